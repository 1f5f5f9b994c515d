dlsym(lib, "cuMemMap"); typedef int (*cuMemCreate_t)(void);
