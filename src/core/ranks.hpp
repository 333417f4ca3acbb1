#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rieszflow {

/// The processes that do one piece of work together (MPI), or one that works alone: what a default one is,
/// and what `all` gives where no launcher started several or the build has no MPI. Calls that exchange
/// something are made by all ranks in the same order, from the main thread; alone they do nothing. A rank
/// that is lost ends the others: MPI's launcher stops them.
class Ranks {
 public:
  Ranks() = default;
  /// Those that mpirun, srun and their like started. MPI must be running (`MpiSession`).
  static Ranks all();

  std::size_t rank() const { return rank_; }
  std::size_t count() const { return count_; }
  bool alone() const { return count_ == 1; }
  bool first() const { return rank_ == 0; }

  /// [begin, end) of `size` things that a rank has: consecutive, as even as possible. One's own by default.
  std::pair<std::size_t, std::size_t> part(std::size_t size) const { return part(size, rank_); }
  std::pair<std::size_t, std::size_t> part(std::size_t size, std::size_t rank) const {
    return {size * rank / count_, size * (rank + 1) / count_};
  }

  /// Everybody's = the first rank's.
  void share(std::int64_t& value) const;
  void share(std::string& text) const;
  void share(std::vector<double>& values) const;  ///< sizes may differ before
  /// Least of all ranks' values.
  std::int64_t least(std::int64_t value) const;
  bool any(bool value) const { return least(value ? 0 : 1) == 0; }
  /// values (item, width): each rank has its `part` of the items before, everybody has all of them after.
  void gather(std::span<double> values, std::size_t width = 1) const;
  /// Sums over the ranks; exact where all but one hold zero.
  void add(std::span<double> values) const;
  /// Texts of all ranks at the first one, in the order of the ranks; nothing elsewhere.
  std::vector<std::string> collect(const std::string& text) const;
  /// One piece of an exchange with another rank; both sides know the sizes, 0 for nothing.
  struct Parcel {
    std::size_t rank;
    std::span<const double> sent;
    std::span<double> received;
  };
  /// All parcels at once; at most one for each rank.
  void exchange(std::span<const Parcel> parcels) const;
  /// sent: (rank) pieces of `sent_counts` numbers, one for each rank, one after the other; received alike.
  void transpose(std::span<const std::complex<double>> sent, std::span<const std::size_t> sent_counts,
                 std::span<std::complex<double>> received,
                 std::span<const std::size_t> received_counts) const;
  void wait_for_all() const { static_cast<void>(least(0)); }
  /// Ends every rank at once with this exit code: for faults that the other ranks do not see.
  void abandon(int exit_code) const;

 private:
  std::size_t rank_ = 0, count_ = 1;
};

/// Runs MPI for the life of this object where a launcher started the program (its environment says so): a run
/// without one pays nothing. One in a program, made before anything calls `Ranks::all`.
class MpiSession {
 public:
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
};

}  // namespace rieszflow
