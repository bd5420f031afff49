// Calls of the PyTorch door that were made before, made again without Python: outputs, launches and the autograd node.
//
// Python teaches a call (node.py): its launches, as the C++ library runs them, and which tensors its gradient needs.
// Whatever is not known in every word of its signature is Python's as ever, forwards and backwards.
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/profiler/api.h>

#include <ATen/EmptyTensor.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <cstring>
#include <memory>
#include <mutex>

#include "native_call.h"
#include "plan_memory.h"

unsigned aclnn_cpu::shard_of_this_thread() { return 0; }  // few threads meet here, and Python's lock parts them

namespace {

using torch::autograd::variable_list;
using Signature = c10::SmallVector<int64_t, 128>;
using Numbers = std::vector<int64_t>;

int64_t word_of(const void* place) { return reinterpret_cast<int64_t>(place); }

// An operator on tensors of one look, with attributes and settings of one value. Tensors are numbered: inputs, then
// outputs; −1 is none.
struct Call {
  struct Output {
    c10::ScalarType dtype = c10::ScalarType::Undefined;  // of one that is not made
    Numbers sizes;
  };
  int64_t product = 0, engine = 0;  // for which it was made
  const aclnn_cpu::NativeCall* launches = nullptr;  // null if only Python can make the call
  int64_t workspace = 0;
  std::vector<Output> outputs;
  Numbers order;  // of addresses
  PyObject* owner = nullptr;  // of the launches, and of all that the signature has the address of

  // Of one with a derivative:
  int64_t learning = 0;  // outputs that have one
  Numbers kept;          // for the gradient, which is of gradients of outputs, then of these
  PyObject* backward = nullptr;  // the name of its operator
  Signature attributes;          // of that
  Numbers gradients;  // by input: which of its outputs
  PyObject* in_python = nullptr;  // the same for what is not known

  Call() = default;
  Call(const Call&) = delete;
  ~Call() {
    if (!Py_IsInitialized()) return;
    const pybind11::gil_scoped_acquire hold;
    for (PyObject* one : {owner, backward, in_python}) Py_XDECREF(one);
  }
};

aclnn_cpu::PlanMemory<Call>* memory = new aclnn_cpu::PlanMemory<Call>;

// What Python gives at the start: its settings, whether there ever were any (runtime/settings.py), and who teaches.
PyObject *settings = nullptr, *teach = nullptr;
const int64_t* ever_entered = nullptr;

aclnn_cpu::Words all_of(const Signature& words) { return {words.data(), words.size()}; }

enum Word { kProduct, kEngine, kThreads, kSettings };  // a signature begins with them

// What a call depends on besides its arguments.
void add_surroundings(Signature& words, PyObject* name, bool learns) {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  const int64_t none = word_of(Py_None);
  words = {none, none, none, word_of(name), static_cast<int64_t>(keys.included_.raw_repr()),
           static_cast<int64_t>(keys.excluded_.raw_repr()), learns};
  if (*ever_entered == 0) return;
  const pybind11::gil_scoped_acquire hold;
  PyObject* now = nullptr;
  if (PyContextVar_Get(settings, nullptr, &now) != 0) throw python_error();
  for (int i = 0; i < kSettings; ++i) words[i] = word_of(PyTuple_GET_ITEM(now, i));
  Py_DECREF(now);
}

// By value and type. False for what nobody can compare.
bool add_attribute(Signature& words, PyObject* value) {
  if (value == Py_None || PyBool_Check(value)) {
    words.push_back(word_of(value));
  } else if (PyLong_CheckExact(value)) {
    int overflow = 0;
    words.append({1, PyLong_AsLongLongAndOverflow(value, &overflow)});
    return overflow == 0;
  } else if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    words.append({2, 0});
    std::memcpy(&words.back(), &number, sizeof number);
  } else if (PyTuple_CheckExact(value)) {
    words.append({3, PyTuple_GET_SIZE(value)});
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      if (!add_attribute(words, PyTuple_GET_ITEM(value, i))) return false;
    }
  } else {
    return false;
  }
  return true;
}

// False for one whose elements do not lie in this memory by strides: sparse, nested, quantized, of another device.
bool add_tensor(Signature& words, const at::Tensor& tensor, bool learns) {
  if (!tensor.defined()) {
    words.push_back(-1);
    return true;
  }
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!impl->key_set().has(c10::DispatchKey::CPU)) return false;
  words.append({static_cast<int64_t>(impl->key_set().raw_repr()), static_cast<int64_t>(tensor.scalar_type()),
                learns && tensor.requires_grad(), impl->dim()});
  words.append(impl->sizes().begin(), impl->sizes().end());
  words.append(impl->strides().begin(), impl->strides().end());
  return true;
}

// All that a call depends on, and its tensors. False for arguments of other types than these.
bool sign(Signature& words, variable_list& tensors, PyObject* name, PyObject* given, PyObject* attributes) {
  const bool learns = c10::GradMode::is_enabled();
  add_surroundings(words, name, learns);
  if (!PyTuple_CheckExact(given) || !add_attribute(words, attributes)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); ++i) {
    PyObject* one = PyTuple_GET_ITEM(given, i);
    if (one != Py_None && !THPVariable_CheckExact(one)) return false;
    tensors.push_back(one == Py_None ? at::Tensor() : THPVariable_Unpack(one));
    if (!add_tensor(words, tensors.back(), learns)) return false;
  }
  return true;
}

// Where a tensor lies; 0 where it is not, its memory is gone, or does not begin where elements do.
int64_t address_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0;
  const auto* impl = tensor.unsafeGetTensorImpl();
  const size_t size = impl->itemsize(), offset = impl->storage_offset();
  const auto where = word_of(tensor.const_data_ptr());
  const size_t end = at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), size, offset);
  return end > impl->unsafe_storage().nbytes() || where % size != 0 ? 0 : where;
}

char* scratch(size_t size) {
  static thread_local std::vector<char> kept;  // native code calls nobody: there is one call at a time
  if (kept.size() < size) kept = std::vector<char>(size);
  return kept.data();
}

// The outputs of a call; none where Python must see to it.
variable_list run(const Call& call, const variable_list& inputs) {
  variable_list tensors = inputs;
  for (const auto& [dtype, sizes] : call.outputs) {
    const bool made = dtype != c10::ScalarType::Undefined;
    tensors.push_back(made ? at::Tensor(at::detail::empty_cpu(sizes, dtype)) : at::Tensor());
  }
  c10::SmallVector<int64_t, 16> addresses = {word_of(scratch(call.workspace)), call.workspace};
  for (const int64_t place : call.order) {
    addresses.push_back(place < 0 ? 0 : address_of(tensors[place]));
    if (place >= 0 && addresses.back() == 0) return {};
  }
  if (!call.launches->run({addresses.data(), addresses.size()})) return {};
  return {tensors.begin() + inputs.size(), tensors.end()};
}

bool watched() { return torch::autograd::profiler::profilerEnabled() || at::impl::torch_function_mode_enabled(); }

struct AclnnBackward : torch::autograd::Node {
  std::shared_ptr<const Call> call;
  std::vector<torch::autograd::SavedVariable> saved;

  std::string name() const override { return "AclnnBackward"; }

  void release_variables() override {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (auto& one : saved) one.reset_data();
  }

  variable_list apply(variable_list&& grads) override {
    variable_list given = std::move(grads);
    given.resize(call->learning);
    if (call->learning == 1 && !given[0].defined()) given[0] = input_metadata(0).zeros_like();
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      for (auto& one : saved) given.push_back(one.unpack(getptr()));
    }
    const variable_list found = again(given);
    if (found.empty()) return in_python(given);
    variable_list gradients;
    for (const int64_t place : call->gradients) gradients.push_back(found[place]);
    return gradients;
  }

  // Without Python, if the like was made before and nobody derives the gradient itself.
  variable_list again(const variable_list& given) const {
    if (c10::GradMode::is_enabled() || watched()) return {};
    Signature words;
    add_surroundings(words, call->backward, false);
    if (words[kProduct] != call->product || words[kEngine] != call->engine) return {};
    words.append(call->attributes.begin(), call->attributes.end());
    for (const at::Tensor& tensor : given) {
      if (!add_tensor(words, tensor, false)) return {};
    }
    const auto known = memory->find(all_of(words));
    return known == nullptr || known->launches == nullptr ? variable_list() : run(*known, given);
  }

  variable_list in_python(const variable_list& given) const {
    const pybind11::gil_scoped_acquire hold;
    pybind11::tuple tensors(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      tensors[i] = pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(given[i]));
    }
    PyObject* found = PyObject_CallOneArg(call->in_python, tensors.ptr());
    if (found == nullptr) {
      python_error raised;
      raised.persist();
      throw raised;
    }
    return THPVariable_UnpackList(pybind11::reinterpret_steal<pybind11::object>(found).ptr());
  }
};

// As PyTorch makes nodes now, and as it did when they were shared_ptrs.
template <class Made, class Base>
auto new_node() {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, Base>) return c10::make_intrusive<Made>();
  else return std::shared_ptr<Made>(new Made, [](Base* node) { deleteNode(node); });
}

void derive(const std::shared_ptr<const Call>& call, const variable_list& inputs, variable_list& outputs) {
  auto node = new_node<AclnnBackward, torch::autograd::Node>();
  node->call = call;
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (int64_t i = 0; i < call->learning; ++i) torch::autograd::set_history(outputs[i], node);
  node->saved.reserve(call->kept.size());
  for (const int64_t place : call->kept) {
    const auto output = place - static_cast<int64_t>(inputs.size());
    if (output < 0) node->saved.emplace_back(inputs[place], false);
    else node->saved.emplace_back(outputs[output], output < call->learning);
  }
}

// again(name, tensors, attributes): the results of a call, or None where Python must see to it. One that was not seen
// yet is given to whoever may teach it.
PyObject* again(PyObject*, PyObject* const* given, Py_ssize_t) {
  HANDLE_TH_ERRORS
  Signature words;
  variable_list tensors, outputs;
  tensors.reserve(8);
  if (!sign(words, tensors, given[0], given[1], given[2])) Py_RETURN_NONE;
  const auto call = memory->find(all_of(words));
  if (call == nullptr) return PyObject_Vectorcall(teach, given, 3, nullptr);  // None, or an error
  if (call->launches != nullptr) {
    const pybind11::gil_scoped_release others;
    outputs = run(*call, tensors);
  }
  if (outputs.empty()) Py_RETURN_NONE;
  if (call->learning > 0) derive(call, tensors, outputs);
  if (outputs.size() == 1) return THPVariable_Wrap(std::move(outputs[0]));
  PyObject* results = PyTuple_New(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) PyTuple_SET_ITEM(results, i, THPVariable_Wrap(std::move(outputs[i])));
  return results;
  END_HANDLE_TH_ERRORS
}

Numbers numbers_of(PyObject* values) {
  Numbers found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) {
    found.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(values, i)));
  }
  return found;
}

// learn(name, tensors, attributes, launches, workspace, outputs, order, owner[, learning, kept, backward, attributes,
// gradients, in_python]): makes a call known, as `Call` has it. Outputs are pairs of dtype and shape, or None.
PyObject* learn(PyObject*, PyObject* given) {
  HANDLE_TH_ERRORS
  PyObject *name, *inputs, *attributes, *outputs, *order, *owner, *kept, *backward = nullptr, *of_backward, *gradients;
  PyObject* in_python = nullptr;
  long long launches, workspace, learning = 0;
  if (!PyArg_ParseTuple(given, "OOOLLOOO|LOOOOO", &name, &inputs, &attributes, &launches, &workspace, &outputs, &order,
                        &owner, &learning, &kept, &backward, &of_backward, &gradients, &in_python)) {
    return nullptr;
  }
  auto call = std::make_shared<Call>();
  Signature words;
  variable_list tensors;
  if (!sign(words, tensors, name, inputs, attributes)) Py_RETURN_NONE;
  call->product = words[kProduct], call->engine = words[kEngine];
  call->launches = reinterpret_cast<const aclnn_cpu::NativeCall*>(launches);
  call->workspace = workspace, call->learning = learning, call->order = numbers_of(order);
  for (PyObject* one : {owner, backward, in_python}) Py_XINCREF(one);
  call->owner = owner, call->backward = backward, call->in_python = in_python;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject* one = PyTuple_GET_ITEM(outputs, i);
    call->outputs.emplace_back();
    if (one == Py_None) continue;
    call->outputs.back().dtype = reinterpret_cast<THPDtype*>(PyTuple_GET_ITEM(one, 0))->scalar_type;
    call->outputs.back().sizes = numbers_of(PyTuple_GET_ITEM(one, 1));
  }
  if (learning > 0) {
    call->kept = numbers_of(kept), call->gradients = numbers_of(gradients);
    if (!add_attribute(call->attributes, of_backward)) Py_RETURN_NONE;
  }
  memory->remember(all_of(words), std::move(call));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* forget(PyObject*, PyObject*) {
  memory->forget();
  Py_RETURN_NONE;
}

PyObject* after_fork(PyObject*, PyObject*) {
  memory = new aclnn_cpu::PlanMemory<Call>;  // somebody may have held the old one, and its launches' threads are gone
  Py_RETURN_NONE;
}

// start(settings, ever_entered, teach)
PyObject* start(PyObject*, PyObject* given) {
  long long where;
  if (!PyArg_ParseTuple(given, "OLO", &settings, &where, &teach)) return nullptr;
  Py_INCREF(settings);
  Py_INCREF(teach);
  ever_entered = reinterpret_cast<const int64_t*>(where);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"again", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(again)), METH_FASTCALL, nullptr},
    {"learn", learn, METH_VARARGS, nullptr},
    {"forget", forget, METH_NOARGS, nullptr},
    {"after_fork", after_fork, METH_NOARGS, nullptr},
    {"start", start, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "aclnn_torch_node", nullptr, -1, functions};

}  // namespace

PyMODINIT_FUNC PyInit_aclnn_torch_node() { return PyModule_Create(&module); }
