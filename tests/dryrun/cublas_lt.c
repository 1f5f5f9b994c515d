/* cuBLASLt in so far as it says which it is. */
unsigned long cublasLtGetVersion(void) {
  return 130102;
}
