//! How resizing reads an axis: which elements, with which weights, for each place of the result.

use heirloom_graph::Attributes;
use heirloom_runtime::BuildError;
use smallvec::SmallVec;

use crate::attributes::unsupported;

/// Where a place of the result lies in the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nearest {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Nearest(Nearest),
    Linear,
    Cubic(f64),
}

/// The attributes of an interpolation.
#[derive(Clone, Debug)]
pub(crate) struct Interpolation {
    pub(crate) mode: Mode,
    pub(crate) coordinates: Coordinates,
    pub(crate) exclude_outside: bool,
    pub(crate) antialias: bool,
    pub(crate) extrapolation: f64,
}

impl Interpolation {
    pub(crate) fn parse(attributes: &Attributes) -> Result<Interpolation, BuildError> {
        let text = |name, default: &'static [u8]| attributes.opt_string(name).map(|v| v.unwrap_or(default));
        let coordinates = match text("coordinate_transformation_mode", b"half_pixel")? {
            b"half_pixel" => Coordinates::HalfPixel,
            b"half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
            b"pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            b"align_corners" => Coordinates::AlignCorners,
            b"asymmetric" => Coordinates::Asymmetric,
            b"tf_half_pixel_for_nn" => Coordinates::TfHalfPixelForNn,
            b"tf_crop_and_resize" => Coordinates::TfCropAndResize,
            other => {
                let value = String::from_utf8_lossy(other);
                return Err(unsupported("coordinate_transformation_mode", value, "there is no such mode"));
            }
        };
        let nearest = match text("nearest_mode", b"round_prefer_floor")? {
            b"round_prefer_floor" | b"" => Nearest::RoundPreferFloor,
            b"round_prefer_ceil" => Nearest::RoundPreferCeil,
            b"floor" => Nearest::Floor,
            b"ceil" => Nearest::Ceil,
            other => {
                let value = String::from_utf8_lossy(other);
                return Err(unsupported("nearest_mode", value, "there is no such mode"));
            }
        };
        let mode = match text("mode", b"nearest")? {
            b"nearest" => Mode::Nearest(nearest),
            b"linear" | b"bilinear" => Mode::Linear,
            b"cubic" => Mode::Cubic(f64::from(attributes.float_or("cubic_coeff_a", -0.75)?)),
            other => {
                return Err(unsupported(
                    "mode",
                    String::from_utf8_lossy(other),
                    "nearest, linear and cubic are",
                ));
            }
        };
        Ok(Interpolation {
            mode,
            coordinates,
            exclude_outside: attributes.int_or("exclude_outside", 0)? != 0,
            antialias: attributes.int_or("antialias", 0)? != 0,
            extrapolation: f64::from(attributes.float_or("extrapolation_value", 0.0)?),
        })
    }
}

/// One axis to resize.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) scale: f64,
    /// Start and end of the part that is resized, 0 and 1 being the corners.
    pub(crate) region: (f64, f64),
}

/// For one place of the result: elements of the input and their weights; none where it lies outside.
pub(crate) type Taps = SmallVec<[(usize, f64); 4]>;

impl Scaled {
    /// Where place `at` of the result lies.
    fn original(&self, at: usize, coordinates: Coordinates) -> f64 {
        let (x, scale) = (at as f64, self.scale);
        let (input, output) = (self.input as f64, self.output as f64);
        match coordinates {
            Coordinates::HalfPixel => (x + 0.5) / scale - 0.5,
            Coordinates::HalfPixelSymmetric => {
                let adjustment = output / (scale * input);
                input / 2.0 * (1.0 - adjustment) + (x + 0.5) / scale - 0.5
            }
            Coordinates::PytorchHalfPixel if self.output > 1 => (x + 0.5) / scale - 0.5,
            Coordinates::PytorchHalfPixel => 0.0,
            // The length that the scale asks for may lie between whole numbers.
            Coordinates::AlignCorners if self.output > 1 => x * (input - 1.0) / (scale * input - 1.0),
            Coordinates::AlignCorners => 0.0,
            Coordinates::Asymmetric => x / scale,
            Coordinates::TfHalfPixelForNn => (x + 0.5) / scale,
            Coordinates::TfCropAndResize => {
                let (start, end) = self.region;
                match self.output > 1 {
                    true => start * (input - 1.0) + x * (end - start) * (input - 1.0) / (output - 1.0),
                    false => 0.5 * (start + end) * (input - 1.0),
                }
            }
        }
    }

    /// The taps of each place of the result.
    pub(crate) fn taps(&self, how: &Interpolation) -> Vec<Taps> {
        (0..self.output).map(|at| self.taps_at(how, at)).collect()
    }

    fn taps_at(&self, how: &Interpolation, at: usize) -> Taps {
        let x = self.original(at, how.coordinates);
        let last = self.input as f64 - 1.0;
        if how.coordinates == Coordinates::TfCropAndResize && !(0.0..=last).contains(&x) {
            return Taps::new();
        }
        let place = |x: f64| x.clamp(0.0, last) as usize;
        // How much wider the filter is that smooths when shrinking.
        let stretch = if how.antialias { (1.0 / self.scale).max(1.0) } else { 1.0 };
        let (reach, filter): (f64, &dyn Fn(f64) -> f64) = match how.mode {
            Mode::Nearest(nearest) => {
                // Noise of the division must not decide a tie.
                let near = (x * 2.0).round() / 2.0;
                let x = if (x - near).abs() < 1e-9 * x.abs().max(1.0) { near } else { x };
                let x = match nearest {
                    Nearest::RoundPreferFloor => (x - 0.5).ceil(),
                    Nearest::RoundPreferCeil => (x + 0.5).floor(),
                    Nearest::Floor => x.floor(),
                    Nearest::Ceil => x.ceil(),
                };
                return SmallVec::from_slice(&[(place(x), 1.0)]);
            }
            Mode::Linear => (stretch, &|d: f64| (1.0 - d.abs() / stretch).max(0.0)),
            Mode::Cubic(a) => (2.0 * stretch, &move |d: f64| cubic((d / stretch).abs(), a)),
        };
        let (first, end) = ((x - reach).floor() as i64 + 1, (x + reach).ceil() as i64 - 1);
        let mut taps = Taps::new();
        for i in first..=end {
            let outside = i < 0 || i as f64 > last;
            if !(how.exclude_outside && outside) {
                taps.push((place(i as f64), filter(i as f64 - x)));
            }
        }
        if how.exclude_outside || how.antialias {
            let sum: f64 = taps.iter().map(|t| t.1).sum();
            taps.iter_mut().for_each(|t| t.1 /= sum);
        }
        taps
    }
}

/// The cubic convolution filter at distance `d`.
fn cubic(d: f64, a: f64) -> f64 {
    if d < 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}
