#!/usr/bin/env python3
"""The Python module: PYTHONPATH=build/release/python python3 tests/python/module_test.py"""

import pathlib
import sys
import tempfile
import unittest

try:
    import numpy
    import rieszflow
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WELLS = {
    "model": {"inverse_temperature": 5.0,
              "domain": {"type": "box", "lower": [-2.0], "upper": [2.0]},
              "potential": [{"type": "double_well", "height": 0.5, "width": 1.0}],
              "interaction": [{"type": "quadratic", "strength": 0.5}]},
    "initial": {"type": "gaussian", "mean": [0.3], "std": [0.4]},
    "time": {"end": 0.2, "output_every": 0.1},
    "particles": {"count": 100, "replicas": 3, "timestep": 5e-3},
    "density": {"cells": [64]},
}


class Module(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="module ")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def test_a_run_gives_its_series_as_arrays(self):
        result = rieszflow.run(WELLS, out=self.path / "a", seed=3)
        self.assertEqual(result.status, "completed")
        energy = result.series("density/free_energy")
        self.assertTrue(numpy.array_equal(energy["time"], [0.0, 0.1, 0.2]))
        self.assertTrue((numpy.diff(energy["value"]) < 0).all())
        self.assertEqual(result.series("particles/mean")["standard_error"].shape, (3,))
        self.assertEqual(result.summary["seed"], 3)

    def test_a_dict_and_its_file_are_the_same_run(self):
        first = rieszflow.run(WELLS, out=self.path / "a")
        again = rieszflow.run(str(self.path / "a" / "config.toml"), out=self.path / "b")
        self.assertEqual(first.summary["particles"]["final"], again.summary["particles"]["final"])

    def test_stepping_ends_where_the_run_ends(self):
        simulation = rieszflow.Simulation(WELLS)
        simulation.advance(0.1)
        simulation.advance(0.1)
        last = rieszflow.run(WELLS, out=self.path / "a").summary
        positions = simulation.positions
        self.assertEqual(positions.shape, (3, 100, 1))
        self.assertAlmostEqual((positions**2).mean(), last["particles"]["final"]["second_moment"], delta=1e-12)
        self.assertAlmostEqual(simulation.free_energy["free_energy"], last["density"]["final"]["free_energy"], delta=1e-12)
        cell = simulation.axes[0][1] - simulation.axes[0][0]
        self.assertAlmostEqual(simulation.density.sum() * cell, 1.0, delta=1e-12)

    def test_views_cost_nothing_cannot_be_written_and_stay_what_they_were(self):
        simulation = rieszflow.Simulation(WELLS)
        first, again = simulation.density, simulation.density
        self.assertEqual(first.__array_interface__["data"], again.__array_interface__["data"])
        with self.assertRaises(ValueError):
            first[0] = 1.0
        before, where = first.copy(), simulation.positions
        there = where.copy()
        simulation.advance(0.1)
        self.assertTrue(numpy.array_equal(first, before))
        self.assertTrue(numpy.array_equal(where, there))
        self.assertFalse(numpy.array_equal(simulation.density, before))
        del simulation
        self.assertTrue(numpy.array_equal(first, before))

    def test_mistakes_are_sentences(self):
        with self.assertRaisesRegex(rieszflow.ConfigError, "particles.count.*must be an integer"):
            rieszflow.run(WELLS, out=self.path / "a", set={"particles.count": 0})
        with self.assertRaisesRegex(rieszflow.ConfigError, "unknown key"):
            rieszflow.Simulation({**WELLS, "partcles": {"count": 1}})
        with self.assertRaises(TypeError):
            rieszflow.Simulation({"model": {"inverse_temperature": object()}})
        rieszflow.run(WELLS, out=self.path / "a")
        with self.assertRaisesRegex(Exception, "force"):
            rieszflow.run(WELLS, out=self.path / "a")
        with self.assertRaises(rieszflow.FileError):
            rieszflow.Result(self.path / "none")


if __name__ == "__main__":
    unittest.main()
