#pragma once
#include <string>

namespace rieszflow {

/// Where this program comes from; baked in when it is configured.
struct BuildInfo {
  std::string version;    ///< of the project
  std::string commit;     ///< `git describe --always --dirty`; "unknown" outside a git checkout
  std::string compiler;   ///< name and version
  std::string libraries;  ///< "HDF5 1.10.8, VTK 9.1.0, ..."
};

const BuildInfo& build_info();

}  // namespace rieszflow
