# `cmake --install build/release --prefix DIR`: the program, its manual page, shell completion, the ready experiments
# and the libraries, for `find_package(rieszflow)`.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rieszflow)
configure_package_config_file(cmake/rieszflowConfig.cmake.in generated/rieszflowConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(generated/rieszflowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/rieszflowConfig.cmake ${PROJECT_BINARY_DIR}/generated/rieszflowConfigVersion.cmake
              cmake/Dependencies.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(EXPORT rieszflow NAMESPACE rieszflow:: FILE rieszflowTargets.cmake DESTINATION ${package_dir} COMPONENT development)

install(TARGETS rieszflow_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET rieszflow_attention_program)
  install(TARGETS rieszflow_attention_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY experiments/ DESTINATION ${CMAKE_INSTALL_DATADIR}/rieszflow/experiments
        FILES_MATCHING PATTERN "*.toml" PATTERN "*.csv")
install(FILES LICENSE CITATION.cff README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Written by the program itself, from the options that it reads.
set(manual_file ${CMAKE_INSTALL_MANDIR}/man1/rieszflow.1)
set(completion_file ${CMAKE_INSTALL_DATADIR}/bash-completion/completions/rieszflow)
install(CODE "
  foreach(pair \"man=${manual_file}\" \"completion=${completion_file}\")
    string(REGEX MATCH \"^([a-z]+)=(.*)$\" _ \"\${pair}\")
    set(command \${CMAKE_MATCH_1})
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${CMAKE_MATCH_2}\")
    message(STATUS \"Installing: \${file}\")
    get_filename_component(folder \"\${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \"$<TARGET_FILE:rieszflow_cli>\" \${command} OUTPUT_FILE \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
