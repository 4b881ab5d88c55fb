// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/runtime.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/cuda/status/advice.h"
#include "kernels/cuda/status/status.h"
#include "kernels/host.h"

namespace headlab::cuda {
namespace {

/// Workspace of cuBLAS, whose algorithm depends on it: the same everywhere, the size that the
/// manual recommends for Hopper, which is the largest.
constexpr std::uint64_t workspace_bytes = std::uint64_t{32} << 20;

/// cuBLAS, loaded when heads are learned on a GPU: it is half a gigabyte, and linking it would add
/// a tenth of a second to the start of every program, on machines without a GPU too.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetAtomicsMode) set_atomics_mode = nullptr;
  decltype(&cublasSgemm_v2_64) multiply = nullptr;
  decltype(&cublasGetStatusName) status_name = nullptr;
  std::string problem;  ///< empty where it is complete
};

template <class Function>
void find(void* library, const char* name, Function& function, std::string& problem) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) problem = std::string("cuBLAS has no ") + name;
}

Cublas load_cublas() {
  Cublas blas;
  // The version of this build's toolkit, or the other major version with the same calls, which may
  // be the only one on a machine with a newer driver than its libraries.
  const std::string own = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  const std::string other = CUBLAS_VER_MAJOR == 12 ? "libcublas.so.13" : "libcublas.so.12";
  void* library = nullptr;
  for (const std::string& name : {own, other}) {
    // The system's, then the folder where this build found it, then that of installed toolkits.
    for (const std::string& file :
         {name, HEADLAB_CUBLAS_FOLDER "/" + name, "/usr/local/cuda/lib64/" + name}) {
      if (library == nullptr) library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (library == nullptr) {
    blas.problem = "cuBLAS (" + own + " or " + other + ") cannot be loaded - install the CUDA " +
                   "libraries, or set LD_LIBRARY_PATH to their folder";
    return blas;
  }
  find(library, "cublasCreate_v2", blas.create, blas.problem);
  find(library, "cublasDestroy_v2", blas.destroy, blas.problem);
  find(library, "cublasSetStream_v2", blas.set_stream, blas.problem);
  find(library, "cublasSetWorkspace_v2", blas.set_workspace, blas.problem);
  find(library, "cublasSetMathMode", blas.set_math_mode, blas.problem);
  find(library, "cublasSetAtomicsMode", blas.set_atomics_mode, blas.problem);
  find(library, "cublasSgemm_v2_64", blas.multiply, blas.problem);
  find(library, "cublasGetStatusName", blas.status_name, blas.problem);
  return blas;
}

const Cublas& cublas() {
  static const Cublas library = load_cublas();
  return library;
}

/// The kernel that this thread launched last; a fault shows in a later call.
thread_local std::string last_kernel;

/// Errors that the oldest toolkit we build with has no name for.
constexpr int error_contained = 226;  ///< a memory error that could not be corrected, on Hopper
constexpr int error_tensor_memory_leak = 721;  ///< a kernel left tensor memory behind

Failure failure_of(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case error_contained:
      return Failure::ecc;
    case error_tensor_memory_leak:
      return Failure::fault;
    default:
      break;
  }
  switch (error) {
    case cudaErrorMemoryAllocation:
      return Failure::out_of_memory;
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceAlreadyInUse:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return Failure::busy;
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorStartupFailure:
    case cudaErrorUnknown:
      return Failure::lost;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return Failure::ecc;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
      return Failure::fault;
    case cudaErrorLaunchTimeout:
      return Failure::timeout;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
      return Failure::no_code;
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
      return Failure::old_driver;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
      return Failure::argument;
    default:
      return Failure::other;
  }
}

Failure failure_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return Failure::out_of_memory;
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return Failure::no_code;
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return Failure::fault;
    case CUBLAS_STATUS_INVALID_VALUE:
      return Failure::argument;
    default:
      return Failure::other;
  }
}

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

std::string text_of(cublasStatus_t status) {
  return std::string("cuBLAS says ") + cublas().status_name(status);
}

[[noreturn]] void fail(FailedCall call) {
  // Resets the error, so that the next call does not report it.
  cudaGetLastError();
  if (cudaGetDevice(&call.device) != cudaSuccess) call.device = -1;
  for (const GpuStatus& gpu : survey().gpus) {
    if (gpu.number == call.device) call.device_name = gpu.name;
  }
  if (last_kernel != call.what) call.last_kernel = last_kernel;
  if (call.failure == Failure::out_of_memory) throw OutOfMemory(failure_text(call));
  throw DeviceError(failure_text(call));
}

template <class Status>
void check(Status status, const std::string& what) {
  if (static_cast<int>(status) == 0) return;
  FailedCall call;
  call.failure = failure_of(status);
  call.what = what;
  call.error = text_of(status);
  fail(std::move(call));
}

std::string of_bytes(const char* what, std::uint64_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

std::optional<std::string> visible_devices() {
  const char* value = environment_variable("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Missing missing_of(cudaError_t error, const Survey& found) {
  if (error == cudaErrorStubLibrary) return Missing::other;
  if (found.driver == 0) return Missing::driver;
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
      return Missing::newer_driver;
    case cudaErrorNoDevice:
      return Missing::device;
    case cudaErrorSystemNotReady:
      return Missing::service;
    case cudaErrorSystemDriverMismatch:
      return Missing::matching_driver;
    default:
      return Missing::other;
  }
}

GpuStatus look_at(int number) {
  GpuStatus gpu;
  gpu.number = number;
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, number);
      error != cudaSuccess) {
    cudaGetLastError();
    gpu.name = "unknown";
    gpu.problem = text_of(error) + " - see nvidia-smi";
    return gpu;
  }
  gpu.name = properties.name;
  gpu.capability = {properties.major, properties.minor};
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.memory = properties.totalGlobalMem;
  gpu.shared_memory = properties.sharedMemPerBlockOptin;
  gpu.problem = code_problem(build_facts(), gpu.capability);
  int mode = cudaComputeModeDefault;
  if (gpu.problem.empty() &&
      cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, number) == cudaSuccess &&
      mode == cudaComputeModeProhibited) {
    gpu.problem = "its compute mode forbids use - nvidia-smi -c DEFAULT";
  }
  return gpu;
}

Survey look_around() {
  Survey found;
  cudaRuntimeGetVersion(&found.runtime);
  if (cudaDriverGetVersion(&found.driver) != cudaSuccess) found.driver = 0;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    found.problem = start_problem(
        count == 0 && error == cudaSuccess ? Missing::device : missing_of(error, found),
        {.driver = found.driver,
         .runtime = found.runtime,
         .visible = visible_devices(),
         .error = text_of(error)});
    return found;
  }
  for (int number = 0; number < count; ++number) found.gpus.push_back(look_at(number));
  found.problem = no_usable_gpu(found.gpus);
  return found;
}

}  // namespace

const Survey& survey() {
  static const Survey found = look_around();
  return found;
}

const BuildFacts& build_facts() {
  static const BuildFacts facts = parse_build_facts(HEADLAB_CUDA_TOOLKIT, HEADLAB_CUDA_CODE,
                                                    HEADLAB_CUDA_OFFERED, HEADLAB_CUDA_LEAST);
  return facts;
}

std::vector<GpuStatus> usable_devices() {
  if (!survey().problem.empty()) throw Unavailable(survey().problem);
  return usable_together(survey().gpus);
}

void use_device(int number) {
  check(cudaSetDevice(number), "starting GPU " + std::to_string(number));
}

std::uint64_t free_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

std::uint64_t total_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the memory");
  return total;
}

std::uint64_t local_memory_of(const void* kernel) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "asking for the local memory of a kernel");
  int device = 0;
  check(cudaGetDevice(&device), "asking for the device");
  std::uint64_t threads = 1;
  for (const cudaDeviceAttr factor :
       {cudaDevAttrMaxThreadsPerMultiProcessor, cudaDevAttrMultiProcessorCount}) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, factor, device), "asking for the threads of the device");
    threads *= static_cast<std::uint64_t>(value);
  }
  return threads * attributes.localSizeBytes;
}

double highest_clock(int number) {
  int kilohertz = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, number), "asking for the clock");
  return 1e3 * kilohertz;
}

void FreeOnDevice::operator()(void* data) const noexcept {
  cudaFree(data);
}
void FreeOnHost::operator()(void* data) const noexcept {
  cudaFreeHost(data);
}

template <class Free>
Allocation<Free>::Allocation(std::uint64_t bytes) {
  if (bytes == 0) return;
  constexpr bool on_device = std::is_same_v<Free, FreeOnDevice>;
  void* data = nullptr;
  const cudaError_t error = on_device ? cudaMalloc(&data, bytes) : cudaMallocHost(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // or the next launch would report it
    return;
  }
  check(error, of_bytes(on_device ? "cudaMalloc" : "cudaMallocHost", bytes));
  data_.reset(data);
}
template class Allocation<FreeOnDevice>;
template class Allocation<FreeOnHost>;

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  stream_ = stream;
}

Stream::~Stream() {
  // The workspace is freed after this, and the queue may still use it.
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  if (blas_ != nullptr) cublas().destroy(static_cast<cublasHandle_t>(blas_));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

void Stream::start_products() {
  if (blas_ != nullptr) return;
  if (!cublas().problem.empty()) throw Unavailable(cublas().problem);
  Memory workspace(workspace_bytes);
  if (workspace.empty()) check(cudaErrorMemoryAllocation, of_bytes("cudaMalloc", workspace_bytes));
  cublasHandle_t blas = nullptr;
  try {
    check(cublas().create(&blas), "starting cuBLAS");
    // The stream first: setting it would put the workspace back to cuBLAS's own.
    check(cublas().set_stream(blas, static_cast<cudaStream_t>(stream_)),
          "giving cuBLAS its stream");
    check(cublas().set_workspace(blas, workspace.as<void>(), workspace_bytes),
          "giving cuBLAS its workspace");
    check(cublas().set_math_mode(blas, CUBLAS_PEDANTIC_MATH), "setting cuBLAS to full float32");
    check(cublas().set_atomics_mode(blas, CUBLAS_ATOMICS_NOT_ALLOWED), "forbidding cuBLAS atomics");
  } catch (...) {
    if (blas != nullptr) cublas().destroy(blas);
    throw;
  }
  blas_ = blas;
  workspace_ = std::move(workspace);
}

void Stream::copy_to_device(void* device, const void* host, std::uint64_t bytes) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                        static_cast<cudaStream_t>(stream_)),
        of_bytes("a copy to the GPU", bytes));
}

void Stream::copy_to_host(void* host, const void* device, std::uint64_t bytes) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                        static_cast<cudaStream_t>(stream_)),
        of_bytes("a copy from the GPU", bytes));
}

void Stream::copy_rows_to_host(void* host, const void* device, std::uint64_t bytes,
                               std::uint64_t pitch, std::uint64_t rows) {
  check(cudaMemcpy2DAsync(host, bytes, device, pitch, bytes, rows, cudaMemcpyDeviceToHost,
                          static_cast<cudaStream_t>(stream_)),
        of_bytes("a copy from the GPU", bytes * rows));
}

void Stream::clear(void* device, std::uint64_t bytes) {
  check(cudaMemsetAsync(device, 0, bytes, static_cast<cudaStream_t>(stream_)),
        of_bytes("clearing memory", bytes));
}

void Stream::synchronise() {
  check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "waiting for the GPU");
}

void Stream::multiply(const float* w, const float* x, float* keys, int outputs, int d,
                      std::int64_t points) {
  start_products();
  // Rows here are columns of the transposes in cuBLAS: keys' = x' w'.
  const float one = 1, zero = 0;
  check(cublas().multiply(static_cast<cublasHandle_t>(blas_), CUBLAS_OP_N, CUBLAS_OP_N, points,
                          outputs, d, &one, x, points, w, d, &zero, keys, points),
        "the projection of " + std::to_string(points) + " points to " + std::to_string(outputs) +
            " coordinates");
}

void Stream::allow_shared_memory(const void* kernel) {
  // Always the largest amount, so that streams do not lower what another one has set.
  if (large_kernels_.contains(kernel)) return;
  int device = 0;
  int most = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "asking for the shared memory");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
        "asking for " + std::to_string(most) + " bytes of shared memory");
  large_kernels_.insert(kernel);
}

void Stream::check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
  last_kernel = kernel;
}

void Mark::Free::operator()(void* event) const noexcept {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

Mark::Mark(Stream& stream) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "creating an event");
  event_.reset(event);
  check(cudaEventRecord(event, static_cast<cudaStream_t>(stream.handle())), "recording an event");
}

double Mark::seconds_since(const Mark& earlier) const {
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(event_.get())), "waiting for an event");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(earlier.event_.get()),
                             static_cast<cudaEvent_t>(event_.get())),
        "measuring time");
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace headlab::cuda
