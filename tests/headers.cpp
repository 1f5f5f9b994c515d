// A program that does nothing: its target holds the headers that tests have in common, compiled once (shardscope_test()).
int main() {}
