# Finds oneDNN as the imported target DNNL::dnnl. Debian's own dnnl-config.cmake fails without OpenCL's headers, which
# our use of it does not need.
find_path(oneDNN_INCLUDE_DIR NAMES dnnl.hpp oneapi/dnnl/dnnl.hpp)
find_library(oneDNN_LIBRARY NAMES dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR)
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)
if(oneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION ${oneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${oneDNN_INCLUDE_DIR})
endif()
