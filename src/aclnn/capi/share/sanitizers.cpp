// What the sanitizers have to know, for programs that are compiled with `aclnn cxx --sanitize`: Python and the libraries
// that it loads keep memory until the process ends. Nothing of this library, and nothing of a program, is passed over.
extern "C" {

__attribute__((weak)) const char* __lsan_default_suppressions() {
  return "leak:libpython\n"
         "leak:.cpython-\n"
         "leak:libcrypto\n"
         "leak:libscipy_openblas\n"
         "leak:libllvmlite\n"
         "leak:libdnnl\n"
         "leak:libgomp\n"
         "leak:ld-linux\n"
         "leak:/lib/ld-\n";
}

// The counts of what was passed over would stand at the end of every run.
__attribute__((weak)) const char* __lsan_default_options() { return "print_suppressions=0"; }

}  // extern "C"
