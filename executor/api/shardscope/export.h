// What libshardscope.so shows to those who link it.
#pragma once

#define SHARDSCOPE_API __attribute__((visibility("default")))
