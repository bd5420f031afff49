// Running another program and reading what it prints.
#pragma once

#include <string>
#include <vector>

namespace aclnn_cpu {

// Its standard output; false when it could not run or did not end with 0. Its standard error goes where ours goes.
bool run_program(const std::vector<std::string>& command, std::string* output);

}  // namespace aclnn_cpu
