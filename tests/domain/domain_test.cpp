#include "domain/domain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "core/expects.hpp"

namespace rieszflow {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<Domain> bounded_domains() {
  return {Box{{-1.0}, {1.0}},
          Box{{0.1, -3.0}, {0.7, 11.0}},
          Box{{0.0, 0.0, 0.0}, {1.0, 1e-9, 3.0}},
          Ball{{0.0}, 1.0},
          Ball{{0.3, -0.2}, 0.7},
          Ball{{100.0, 200.0, -300.0}, 1e-3},
          Torus{{-1.0}, {1.0}},
          Torus{{0.1, -3.0, 5.0}, {0.7, 11.0, 5.3}}};
}

/// Points up to fifty diameters away, most of them outside.
std::vector<double> random_point(const Domain& domain, std::mt19937_64& random) {
  const Box box = bounding_box(domain);
  std::uniform_real_distribution<double> uniform(-50.0, 50.0);
  std::vector<double> point(dimension(domain));
  for (std::size_t k = 0; k < point.size(); ++k)
    point[k] = box.lower[k] + uniform(random) * (box.upper[k] - box.lower[k]);
  return point;
}

TEST(Domain, ProjectionAndReflectionEndInsideFromAnyDistanceAndAreIdempotent) {
  std::mt19937_64 random(1);
  for (const Domain& domain : bounded_domains())
    for (int trial = 0; trial < 20000; ++trial) {
      const std::vector<double> start = random_point(domain, random);
      for (const auto move : {&project, &reflect}) {
        std::vector<double> point = start;
        move(domain, point);
        ASSERT_TRUE(contains(domain, point)) << "domain " << domain.index() << " start " << start[0];
        const std::vector<double> once = point;
        move(domain, point);
        ASSERT_EQ(point, once);
      }
    }
}

TEST(Domain, ProjectionFindsTheNearestPoint) {
  std::mt19937_64 random(2);
  const auto distance = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return std::sqrt(sum);
  };
  for (const Domain& domain : {Domain(Box{{0.1, -3.0}, {0.7, 11.0}}), Domain(Ball{{0.3, -0.2}, 0.7})})
    for (int trial = 0; trial < 2000; ++trial) {
      const std::vector<double> start = random_point(domain, random);
      std::vector<double> nearest = start;
      project(domain, nearest);
      std::vector<double> other = random_point(domain, random);
      project(domain, other);
      // 1e-14: rounding of distances of order 100.
      ASSERT_LE(distance(start, nearest), distance(start, other) * (1.0 + 1e-14));
    }
}

TEST(Domain, ReflectionOfAShortStepIsTheMirrorImage) {
  std::vector<double> point{1.25};
  reflect(Box{{-1.0}, {1.0}}, point);
  EXPECT_EQ(point[0], 0.75);
  point = {-1.125};
  reflect(Box{{-1.0}, {1.0}}, point);
  EXPECT_EQ(point[0], -0.875);
  std::vector<double> planar{0.0, 1.5};
  reflect(Ball{{0.0, 0.0}, 1.0}, planar);
  EXPECT_NEAR(planar[0], 0.0, 1e-15);
  EXPECT_NEAR(planar[1], 0.5, 1e-15);
}

TEST(Domain, ReflectionUnfoldsToATriangleWave) {
  // acos(cos) is a triangle wave of period 2 pi on [0, pi].
  const Domain box = Box{{0.0}, {std::numbers::pi}};
  for (int k = -4000; k <= 4000; ++k) {
    const double x = 0.01 * k;
    std::vector<double> point{x};
    reflect(box, point);
    // acos loses half the digits near its ends: compare the cosines and the sides.
    ASSERT_NEAR(std::cos(point[0]), std::cos(x), 1e-13) << x;
  }
}

TEST(Domain, ReflectionInABallComesOutOnTheOtherSideOfTheCentre) {
  const Domain ball = Ball{{1.0, 2.0}, 1.0};
  std::vector<double> point{1.0 + 2.5, 2.0};  // folded radius -0.5
  reflect(ball, point);
  EXPECT_NEAR(point[0], 0.5, 1e-15);
  EXPECT_NEAR(point[1], 2.0, 1e-15);
  point = {1.0 + 3.5, 2.0};  // past the opposite wall: -1, then back to -0.5
  reflect(ball, point);
  EXPECT_NEAR(point[0], 0.5, 1e-15);
  point = {1.0 + 4.25, 2.0};  // one whole period is 4 radii
  reflect(ball, point);
  EXPECT_NEAR(point[0], 1.25, 1e-14);
}

TEST(Domain, ReflectionShortensNoShortPathAndKeepsOneDimensionalBallAndBoxEqual) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-9.0, 9.0);
  for (int trial = 0; trial < 2000; ++trial) {
    const double x = uniform(random);
    std::vector<double> in_box{x};
    std::vector<double> in_ball{x};
    reflect(Box{{-1.0}, {1.0}}, in_box);
    reflect(Ball{{0.0}, 1.0}, in_ball);
    ASSERT_NEAR(in_box[0], in_ball[0], 1e-14);
  }
}

TEST(Domain, ReflectionIsAnIsometryBeyondOneWall) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> outside(1.0, 1.4);
  const Domain box = Box{{-1.0, -1.0}, {1.0, 1.0}};
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> a{outside(random), 0.3};
    std::vector<double> b{outside(random), -0.6};
    const double before = std::hypot(a[0] - b[0], a[1] - b[1]);
    reflect(box, a);
    reflect(box, b);
    ASSERT_NEAR(std::hypot(a[0] - b[0], a[1] - b[1]), before, 1e-15);
  }
}

TEST(Domain, StepsOfAnyFiniteLengthAreFoldedInside) {
  for (const Domain& domain : bounded_domains())
    for (const double length : {1e-12, 10.0, 1e6, 1e15, 1e150, 1e300}) {
      std::vector<double> point(dimension(domain), length);
      point[0] = -length;
      for (const auto move : {&project, &reflect}) {
        std::vector<double> moved = point;
        move(domain, moved);
        ASSERT_TRUE(contains(domain, moved)) << "domain " << domain.index() << " length " << length;
      }
    }
}

TEST(Domain, PointsOnTheSphereAndOneUlpAroundItAreKeptInside) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const Ball ball{{0.3, -0.2, 0.9}, 0.7};
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<double> direction{normal(random), normal(random), normal(random)};
    const double norm = std::hypot(direction[0], direction[1], direction[2]);
    for (const double radius :
         {ball.radius, std::nextafter(ball.radius, 0.0), std::nextafter(ball.radius, 1.0)}) {
      std::vector<double> point(3);
      for (std::size_t k = 0; k < 3; ++k) point[k] = ball.center[k] + radius * (direction[k] / norm);
      std::vector<double> moved = point;
      reflect(ball, moved);
      ASSERT_TRUE(contains(ball, moved));
      for (std::size_t k = 0; k < 3; ++k) ASSERT_NEAR(moved[k], point[k], 1e-15);
    }
  }
}

TEST(Domain, ATorusNeverReturnsItsUpperWall) {
  const Torus torus{{-1.0}, {1.0}};
  for (const double x : {1.0, std::nextafter(1.0, 2.0), std::nextafter(1.0, 0.0), -1.0,
                         std::nextafter(-1.0, -2.0), -1.0 - 1e-300, 3.0, 5.0, -3.0, 1e17}) {
    std::vector<double> point{x};
    project(torus, point);
    EXPECT_GE(point[0], -1.0) << x;
    EXPECT_LT(point[0], 1.0) << x;
  }
  std::vector<double> tiny{-1e-30};
  project(Torus{{0.0}, {1.0}}, tiny);
  EXPECT_EQ(tiny[0], 0.0);
  EXPECT_FALSE(contains(torus, std::vector<double>{1.0}));
}

TEST(Domain, TorusDisplacementIsTheShortestAndPeriodic) {
  std::mt19937_64 random(6);
  const Torus torus{{0.1, -3.0}, {0.7, 11.0}};
  std::uniform_real_distribution<double> unit;
  for (int trial = 0; trial < 5000; ++trial) {
    const std::vector<double> x{0.1 + 0.6 * unit(random), -3.0 + 14.0 * unit(random)};
    std::vector<double> y{0.1 + 0.6 * unit(random), -3.0 + 14.0 * unit(random)};
    std::vector<double> z(2);
    displacement(torus, x, y, z);
    const std::vector<double> length{0.6, 14.0};
    for (std::size_t k = 0; k < 2; ++k) {
      ASSERT_GE(z[k], -0.5 * (torus.upper[k] - torus.lower[k]));
      ASSERT_LT(z[k], 0.5 * (torus.upper[k] - torus.lower[k]));
      const double shift = (x[k] - y[k] - z[k]) / (torus.upper[k] - torus.lower[k]);
      ASSERT_NEAR(shift, std::round(shift), 1e-14);
    }
  }
}

TEST(Domain, NonFiniteCoordinatesStayVisible) {
  for (const Domain& domain : bounded_domains())
    for (const double bad : {std::nan(""), infinity, -infinity})
      for (const auto move : {&project, &reflect}) {
        std::vector<double> point(dimension(domain), bad);
        move(domain, point);
        EXPECT_FALSE(std::isfinite(point[0]));
        EXPECT_FALSE(contains(domain, point));
      }
}

TEST(Domain, VolumesAreLebesgueMeasures) {
  EXPECT_DOUBLE_EQ(volume(Box{{0.0, 1.0}, {2.0, 4.0}}), 6.0);
  EXPECT_DOUBLE_EQ(volume(Torus{{0.0}, {2.0}}), 2.0);
  EXPECT_NEAR(volume(Ball{{0.0}, 2.0}), 4.0, 1e-14);
  EXPECT_NEAR(volume(Ball{{0.0, 0.0}, 2.0}), 4.0 * std::numbers::pi, 1e-13);
  EXPECT_NEAR(volume(Ball{{0.0, 0.0, 0.0}, 2.0}), 32.0 / 3.0 * std::numbers::pi, 1e-12);
  EXPECT_EQ(volume(WholeSpace{3}), infinity);
  EXPECT_EQ(dimension(WholeSpace{3}), 3u);
}

TEST(Domain, TheBoundingBoxOfABallTouchesIt) {
  const Box box = bounding_box(Ball{{1.0, -1.0}, 0.5});
  EXPECT_EQ(box.lower, (std::vector<double>{0.5, -1.5}));
  EXPECT_EQ(box.upper, (std::vector<double>{1.5, -0.5}));
  EXPECT_THROW(bounding_box(WholeSpace{2}), PreconditionViolation);
}

}  // namespace
}  // namespace rieszflow
