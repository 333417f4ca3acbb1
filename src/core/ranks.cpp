#include "core/ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/expects.hpp"

#ifdef RIESZFLOW_MPI
#include <mpi.h>
#endif

namespace rieszflow {

#ifdef RIESZFLOW_MPI

namespace {

/// The variables by which Open MPI, MPICH, Slurm's PMIx and Intel MPI tell a process that it is one of
/// several.
bool launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

bool running() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

int as_int(std::size_t value) {
  expects(value <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "MPI counts in 31 bits");
  return static_cast<int>(value);
}

/// Offsets of pieces that follow one another.
std::vector<int> offsets(const std::vector<int>& counts) {
  std::vector<int> result(counts.size(), 0);
  for (std::size_t r = 1; r < counts.size(); ++r) result[r] = result[r - 1] + counts[r - 1];
  return result;
}

std::vector<int> as_ints(std::span<const std::size_t> values) {
  std::vector<int> result;
  for (const std::size_t value : values) result.push_back(as_int(value));
  return result;
}

}  // namespace

MpiSession::MpiSession() {
  int provided = 0;
  if (launched() && !running()) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
}

MpiSession::~MpiSession() {
  if (running()) MPI_Finalize();
}

Ranks Ranks::all() {
  Ranks ranks;
  if (!running()) return ranks;
  int rank = 0, count = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  ranks.rank_ = static_cast<std::size_t>(rank);
  ranks.count_ = static_cast<std::size_t>(count);
  return ranks;
}

void Ranks::share(std::int64_t& value) const {
  if (!alone()) MPI_Bcast(&value, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

void Ranks::share(std::string& text) const {
  if (alone()) return;
  auto size = static_cast<std::int64_t>(text.size());
  share(size);
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), as_int(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
}

void Ranks::share(std::vector<double>& values) const {
  if (alone()) return;
  auto size = static_cast<std::int64_t>(values.size());
  share(size);
  values.resize(static_cast<std::size_t>(size));
  MPI_Bcast(values.data(), as_int(values.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

std::int64_t Ranks::least(std::int64_t value) const {
  if (!alone()) MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  return value;
}

void Ranks::gather(std::span<double> values, std::size_t width) const {
  if (alone()) return;
  std::vector<int> counts;
  for (std::size_t r = 0; r < count_; ++r) {
    const auto [begin, end] = part(values.size() / width, r);
    counts.push_back(as_int((end - begin) * width));
  }
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values.data(), counts.data(), offsets(counts).data(),
                 MPI_DOUBLE, MPI_COMM_WORLD);
}

void Ranks::add(std::span<double> values) const {
  if (!alone())
    MPI_Allreduce(MPI_IN_PLACE, values.data(), as_int(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

std::vector<std::string> Ranks::collect(const std::string& text) const {
  if (alone()) return {text};
  const int size = as_int(text.size());
  std::vector<int> sizes(count_);
  MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::vector<int> places = offsets(sizes);
  std::string all(first() ? static_cast<std::size_t>(places.back() + sizes.back()) : 0, '\0');
  MPI_Gatherv(text.data(), size, MPI_CHAR, all.data(), sizes.data(), places.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  std::vector<std::string> result;
  if (!first()) return result;
  for (std::size_t r = 0; r < count_; ++r)
    result.push_back(all.substr(static_cast<std::size_t>(places[r]), static_cast<std::size_t>(sizes[r])));
  return result;
}

void Ranks::exchange(std::span<const Parcel> parcels) const {
  if (alone()) return;
  std::vector<MPI_Request> requests;
  for (const Parcel& parcel : parcels) {
    const int peer = static_cast<int>(parcel.rank);
    if (!parcel.received.empty())
      MPI_Irecv(parcel.received.data(), as_int(parcel.received.size()), MPI_DOUBLE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
    if (!parcel.sent.empty())
      MPI_Isend(parcel.sent.data(), as_int(parcel.sent.size()), MPI_DOUBLE, peer, 0, MPI_COMM_WORLD,
                &requests.emplace_back());
  }
  MPI_Waitall(as_int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void Ranks::transpose(std::span<const std::complex<double>> sent, std::span<const std::size_t> sent_counts,
                      std::span<std::complex<double>> received,
                      std::span<const std::size_t> received_counts) const {
  expects(sent_counts.size() == count_ && received_counts.size() == count_, "one piece for each rank");
  if (alone()) {
    std::ranges::copy(sent, received.begin());
    return;
  }
  const std::vector<int> out = as_ints(sent_counts), in = as_ints(received_counts);
  MPI_Alltoallv(sent.data(), out.data(), offsets(out).data(), MPI_CXX_DOUBLE_COMPLEX, received.data(),
                in.data(), offsets(in).data(), MPI_CXX_DOUBLE_COMPLEX, MPI_COMM_WORLD);
}

void Ranks::abandon(int exit_code) const {
  if (!alone()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

#else

MpiSession::MpiSession() = default;
MpiSession::~MpiSession() = default;
Ranks Ranks::all() { return {}; }
void Ranks::share(std::int64_t&) const {}
void Ranks::share(std::string&) const {}
void Ranks::share(std::vector<double>&) const {}
std::int64_t Ranks::least(std::int64_t value) const { return value; }
void Ranks::gather(std::span<double>, std::size_t) const {}
void Ranks::add(std::span<double>) const {}
std::vector<std::string> Ranks::collect(const std::string& text) const { return {text}; }
void Ranks::exchange(std::span<const Parcel>) const {}
void Ranks::transpose(std::span<const std::complex<double>> sent, std::span<const std::size_t>,
                      std::span<std::complex<double>> received, std::span<const std::size_t>) const {
  std::ranges::copy(sent, received.begin());
}
void Ranks::abandon(int) const {}

#endif

}  // namespace rieszflow
