// A program into which the loader brings no library.
int main(void) {
  return 0;
}
