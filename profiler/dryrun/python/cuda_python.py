# The package cuda-python in a dry run. Its runtime is linked statically, so that no library comes before it, and takes
# no driver but NVIDIA's. Its modules look each other's C functions up in a table, where the stand-in's are put.
import ctypes

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_void_p, [ctypes.py_object]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]


def take_over(module):
    """Called when the module of the runtime's C functions is loaded, before those that use it."""
    function = ctypes.CDLL(None).shardscope_standin_function
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    table = module.__pyx_capi__
    for name, capsule in list(table.items()):
        if name.startswith("cuda") and (address := function(name.encode())):
            table[name] = new_capsule(address, capsule_name(capsule), None)
