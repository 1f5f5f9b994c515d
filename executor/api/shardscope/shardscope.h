// Shardscope from C++: a model, a strategy, a plan, and training in a loop of your own.
//
//   find_package(shardscope REQUIRED)
//   target_link_libraries(my_program PRIVATE shardscope::shardscope)
#pragma once

#include <shardscope/model.h>
#include <shardscope/plan.h>
#include <shardscope/result.h>
#include <shardscope/strategy.h>
#include <shardscope/training.h>
