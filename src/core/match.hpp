#pragma once

namespace rieszflow {

/// A visitor made of one function for each alternative: std::visit(Match{[](const Box&) {...}, ...}, domain).
template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

}  // namespace rieszflow
