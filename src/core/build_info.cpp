#include "core/build_info.hpp"

#include "core/build_info_values.hpp"  // generated: src/core/CMakeLists.txt

namespace rieszflow {

const BuildInfo& build_info() {
  static const BuildInfo info{build_info_values::version, build_info_values::commit, build_info_values::compiler,
                              build_info_values::libraries};
  return info;
}

}  // namespace rieszflow
