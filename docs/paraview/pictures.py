"""pvbatch docs/paraview/pictures.py LINE SQUARE WELLS OUT: four pictures of what `rieszflow export --vtk` wrote.

LINE, SQUARE and WELLS are the folders that hold density.pvd and particles.pvd of a run in one, two and three
dimensions; the pictures appear in OUT. docs/paraview/pictures.sh makes the runs and calls this.
"""

import pathlib
import sys

from paraview.simple import *  # noqa: F403  the way that ParaView's own traces are written

line, square, wells, out = map(pathlib.Path, sys.argv[1:5])
INK, PAPER = [0.13, 0.13, 0.15], [1.0, 1.0, 1.0]
paraview.simple._DisableFirstRenderCameraReset()


def last(folder, kind):
    """The reader of one side at the last time of the run, and that time."""
    reader = PVDReader(FileName=str(folder / f"{kind}.pvd"))
    reader.UpdatePipelineInformation()
    times = list(reader.TimestepValues)
    reader.UpdatePipeline(times[-1])
    return reader, times[-1]


def view_of(time, title, size=(840, 640)):
    view = CreateView("RenderView")
    view.ViewSize, view.ViewTime = list(size), time
    view.Background, view.UseColorPaletteForBackground = PAPER, 0
    view.OrientationAxesVisibility = 0
    text = Text(Text=title)
    shown = Show(text, view)
    shown.Color, shown.FontSize, shown.WindowLocation = INK, 15, "Upper Center"
    return view


def label_axes(display, dimension):
    grid = display.DataAxesGrid
    grid.GridAxesVisibility = 1
    for axis in "XYZ":
        setattr(grid, f"{axis}Title", f"{axis.lower()} [length]" if "XYZ".index(axis) < dimension else "")
        for part in ("Title", "Label"):
            setattr(grid, f"{axis}{part}Color", INK)
            setattr(grid, f"{axis}{part}FontSize", 14)
    if dimension == 2:
        grid.AxesToLabel = 3  # the lower side of x and of y
    grid.GridColor = [0.6, 0.6, 0.65]


def colour(display, view, array, association, title, preset="Viridis (matplotlib)", range=None):
    ColorBy(display, (association, array))
    table = GetColorTransferFunction(array)
    table.ApplyPreset(preset, True)
    if range:
        table.RescaleTransferFunction(*range)
    else:
        display.RescaleTransferFunctionToDataRange(False, True)
    bar = GetScalarBar(table, view)
    bar.Title, bar.ComponentTitle = title, ""
    bar.TitleColor = bar.LabelColor = INK
    bar.TitleFontSize = bar.LabelFontSize = 13
    bar.WindowLocation, bar.Position, bar.ScalarBarLength = "Any Location", [0.86, 0.25], 0.5
    bar.Orientation, bar.RangeLabelFormat, bar.LabelFormat = "Vertical", "%.3g", "%.3g"
    bar.AutomaticLabelFormat, bar.HorizontalTitle = 0, 1
    bar.Visibility = 1
    display.SetScalarBarVisibility(view, True)
    return table


def flat(view, width):
    """A camera that looks down on a square of this width, a little to the left of the colour bar."""
    view.InteractionMode = "2D"
    view.CameraParallelProjection, view.CameraParallelScale = 1, 0.63 * width
    view.CameraPosition, view.CameraFocalPoint = [0.12 * width, 0.0, 10.0], [0.12 * width, 0.0, 0.0]
    view.CameraViewUp = [0.0, 1.0, 0.0]


def oblique(view):
    view.CameraPosition, view.CameraFocalPoint, view.CameraViewUp = [6.6, -8.6, 5.0], [0.7, 0.25, -0.15], [0.0, 0.0, 1.0]
    view.CameraViewAngle = 34


def save(view, name):
    SaveScreenshot(str(out / f"{name}.png"), view, ImageResolution=list(view.ViewSize), CompressionLevel="9")


def density_on_a_line():
    view = CreateView("XYChartView")
    view.ViewSize = [840, 540]
    view.ChartTitle, view.ChartTitleFontSize = "Density in a double well, from one well into both", 16
    view.BottomAxisTitle, view.LeftAxisTitle = "x [length]", "density [1/length]"
    view.BottomAxisTitleFontSize = view.LeftAxisTitleFontSize = 15
    view.BottomAxisLabelFontSize = view.LeftAxisLabelFontSize = view.LegendFontSize = 14
    files = PVDReader(FileName=str(line / "density.pvd"))
    files.UpdatePipelineInformation()
    times = list(files.TimestepValues)
    for time, shade in zip((times[0], times[1], times[-1]), ([0.75, 0.5, 0.1], [0.2, 0.6, 0.55], [0.25, 0.2, 0.5])):
        at = ForceTime(Input=PVDReader(FileName=str(line / "density.pvd")), ForcedTime=time)
        shown = Show(CellCenters(Input=at), view, "XYChartRepresentation")
        shown.UseIndexForXAxis, shown.XArrayName = 0, "Points_X"
        shown.SeriesVisibility = ["density"]
        shown.SeriesLabel = ["density", f"t = {time:g}"]
        shown.SeriesColor = ["density", *map(str, shade)]
        shown.SeriesLineThickness = ["density", "3"]
    save(view, "paraview_density_1d")


def density_in_a_square():
    reader, time = last(square, "density")
    view = view_of(time, f"Coulomb gas in a square, density at t = {time:g}")
    shown = Show(reader, view)
    shown.SetRepresentationType("Surface")
    colour(shown, view, "density", "CELLS", "density\n[1/length^2]")
    label_axes(shown, 2)
    flat(view, 2.0)
    save(view, "paraview_density_2d")


def density_in_space():
    reader, time = last(wells, "density")
    view = view_of(time, f"Double wells in space: levels of the density at t = {time:g}")
    outline = Show(Outline(Input=reader), view)
    outline.AmbientColor = outline.DiffuseColor = [0.6, 0.6, 0.65]
    label_axes(outline, 3)
    points = CellDatatoPointData(Input=reader)
    points.UpdatePipeline(time)
    low, high = points.PointData["density"].GetRange()
    for part, opacity in ((0.15, 0.2), (0.4, 0.4), (0.75, 1.0)):
        level = Contour(Input=points, ContourBy=["POINTS", "density"], Isosurfaces=[low + part * (high - low)])
        shown = Show(level, view)
        shown.Opacity = opacity
        colour(shown, view, "density", "POINTS", "density\n[1/length^3]", range=(0.0, high))
    oblique(view)
    save(view, "paraview_density_3d")


def cloud():
    reader, time = last(wells, "particles")
    count = reader.GetDataInformation().GetNumberOfPoints()
    view = view_of(time, f"{count} particles of the same model at t = {time:g}")
    frame, _ = last(wells, "density")
    outline = Show(Outline(Input=frame), view)
    outline.AmbientColor = outline.DiffuseColor = [0.6, 0.6, 0.65]
    label_axes(outline, 3)
    place = Calculator(Input=reader, ResultArrayName="x", Function="coordsX")
    shown = Show(place, view)
    shown.SetRepresentationType("Point Gaussian")
    shown.GaussianRadius, shown.ShaderPreset = 0.03, "Plain circle"
    colour(shown, view, "x", "POINTS", "x\n[length]", preset="Cool to Warm", range=(-2.0, 2.0))
    oblique(view)
    save(view, "paraview_particles_3d")


out.mkdir(parents=True, exist_ok=True)
for picture in (density_on_a_line, density_in_a_square, density_in_space, cloud):
    picture()
