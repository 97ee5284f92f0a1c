# Where a program finds its catalogues: <its folder>/share/ulysim in a build tree, <its folder>/../share/ulysim once
# installed (and for test programs, one folder below the build folder). Both are relative to the program, so a prefix
# or a checkout may be moved. Included last: it installs the programs that exist.

# ulysim_data(NAME FOLDER): FOLDER of the source tree is share/ulysim/NAME, as a relative link in the build tree (data
# edited in the sources are seen without a build) and as a copy in an installed one.
function(ulysim_data name folder)
  set(link ${CMAKE_BINARY_DIR}/share/ulysim/${name})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/ulysim)
  # The link counts from where it really lies, not from a path that leads through other links.
  file(REAL_PATH ${CMAKE_BINARY_DIR}/share/ulysim here)
  file(REAL_PATH ${CMAKE_SOURCE_DIR}/${folder} there)
  file(RELATIVE_PATH target ${here} ${there})
  set(current "")
  if(IS_SYMLINK ${link})
    file(READ_SYMLINK ${link} current)
  endif()
  if(NOT current STREQUAL target)
    file(REMOVE_RECURSE ${link})
    file(CREATE_LINK ${target} ${link} SYMBOLIC)
  endif()
  install(DIRECTORY ${folder}/ DESTINATION share/ulysim/${name})
endfunction()

ulysim_data(catalog hw_models/catalog)
ulysim_data(scenarios scenarios)

foreach(program ulysim ulysim-calibrate-host ulysim-calibrate-cuda ulysim-sweep-mpi)
  # One that the build leaves out until a test asks for it is not there to be installed.
  if(TARGET ${program})
    get_target_property(left_out ${program} EXCLUDE_FROM_ALL)
  endif()
  if(TARGET ${program} AND NOT left_out)
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()
install(FILES LICENSE DESTINATION share/doc/ulysim)
