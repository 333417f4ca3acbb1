# rieszflow_room(NAME FOLDER dir DEPENDS rooms... PRIVATE third-party...)
#
# One room of the house = one static library `rieszflow_<name>` made of the .cpp and .hpp files of its folder.
# DEPENDS are the rooms that its headers may include; PRIVATE are third-party targets that its .cpp files use.
# Each header is compiled alone by the target `all_verify_interface_header_sets` (built by the tests).
function(rieszflow_room name)
  cmake_parse_arguments(ROOM "INTERNAL" "FOLDER" "DEPENDS;PUBLIC;PRIVATE" ${ARGN})
  set(folder ${CMAKE_CURRENT_SOURCE_DIR})
  if(ROOM_FOLDER)
    set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM_FOLDER})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.hpp)
  set(target rieszflow_${name})
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  set(base ${PROJECT_SOURCE_DIR})  # what the includes of this room's headers are relative to
  if(folder MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    set(base ${PROJECT_SOURCE_DIR}/src)
  endif()
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${base} FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${RIESZFLOW_TESTS})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                              $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE ${RIESZFLOW_COMPILE_OPTIONS})
  foreach(room ${ROOM_DEPENDS})
    target_link_libraries(${target} PUBLIC rieszflow_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  add_library(rieszflow::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  if(NOT ROOM_INTERNAL)
    install(TARGETS ${target} EXPORT rieszflow ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
            FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rieszflow COMPONENT development)
  endif()
endfunction()
