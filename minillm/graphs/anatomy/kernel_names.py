"""Short names for kernels: what is computed, then the kernel that does it."""

from __future__ import annotations

import functools
import re

# Kernels that run any function on each element, or reduce with it: the function is a template argument.
GENERIC = re.compile(r"elementwise|reduce_kernel|tensor_kernel_scan|scan_(inner|outer)most")
FUNCTORS = [
    # a lambda within a host function, such as rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda…
    re.compile(r"(?:launch_)?(\w+?)(?:_kernel|_cuda|_impl|_gpu|_iter)*(?:<[^()<>]*>)?\(at::TensorIterator"),
    re.compile(r"(\w+?)_kernel<at::CUDAGenerator"),
    re.compile(r"native::(\w+?)_cuda_out\("),
    re.compile(r"CUDAFunctor(?:OnSelf|OnOther)?_(\w+)"),
    re.compile(r"binary_internal::(\w+)Functor"),
    re.compile(r"(\w+)_functor\b"),
    re.compile(r"native::(?:\w+::)*(?!AUnary|BUnary|Binary|Unary)(\w+)Functor\b"),
    re.compile(r"native::(\w+)Ops<"),
]
# Kernels named by a template argument: cutlass::Kernel2<cutlass_80_tensorop_…>.
WRAPPERS = {"Kernel", "Kernel2", "device_kernel", "kernel"}


@functools.lru_cache(4096)
def short_name(full: str) -> str:
    """ "add (vectorized_elementwise)" from the demangled name; other kernels without types and arguments."""
    if full.startswith("_Z"):  # could not be demangled
        return full
    plain = full.replace("(anonymous namespace)::", "")
    name = base_name(plain)
    if name in WRAPPERS and (argument := re.match(r"[^<]*<\s*([\w:]+)", plain)):
        return argument[1].rpartition("::")[2]
    if GENERIC.search(name):
        found = next((m for pattern in FUNCTORS if (m := pattern.search(plain))), None)
        return f"{snake(found[1])} ({name.removesuffix('_kernel')})" if found else name
    return name


def base_name(plain: str) -> str:
    """The function's own name, without return type, namespaces, template arguments and parameters."""
    head = re.split(r"[<(]", plain.strip(), maxsplit=1)[0]
    return head.split(" ")[-1].rpartition("::")[2] or plain


def snake(name: str) -> str:
    """ "Mul" as "mul", "CompareEq" as "compare_eq"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
