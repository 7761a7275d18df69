"""Functions that go another way for a CUDA tensor than for a CPU tensor, as they go for a CUDA tensor."""

import torch
from torch import Tensor

from .messages import torch_error


def one_hot(index, num_classes=-1):
    """For a CPU tensor it looks first whether a class is out of range."""
    if num_classes == -1:
        return NotImplemented  # the largest index decides: both have to look
    if num_classes < 1:
        raise torch_error("num_classes should be positive")
    zeros = torch.zeros(*index.shape, num_classes, dtype=index.dtype, device=index.device)
    return zeros.scatter_(-1, index.unsqueeze(-1), 1)


def equal(a, b):
    """Tensors of two shapes need no look at their values, nor do a tensor and itself."""
    if a.shape != b.shape:
        return False
    same = a.data_ptr() == b.data_ptr() and a.stride() == b.stride()
    return True if same else NotImplemented


def tensor_split(x, where, dim=0):
    """It wants to know on the host where to split."""
    if isinstance(where, Tensor):
        raise torch_error("tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0")
    return NotImplemented


# function -> what to do instead; NotImplemented: nothing else
ON_A_GPU = {
    torch.nn.functional.one_hot: one_hot,
    **dict.fromkeys((torch.equal, Tensor.equal), equal),
    **dict.fromkeys((torch.tensor_split, Tensor.tensor_split), tensor_split),
}
