//! Channels behind all other axes, moved in front of the spatial ones and back.

use heirloom_mem::Shape;

/// Moves the last axis behind the first.
pub(crate) fn in_front<T: Copy>(shape: &[usize], values: &[T]) -> (Shape, Vec<T>) {
    let &[batch, ref spatial @ .., channels] = shape else {
        return (Shape::from_slice(shape), values.into());
    };
    let plane: usize = spatial.iter().product();
    let to = [batch, channels].into_iter().chain(spatial.iter().copied()).collect();
    (to, exchanged(batch, plane, channels, values))
}

/// Moves the second axis behind all.
pub(crate) fn behind<T: Copy>(shape: &[usize], values: &[T]) -> (Shape, Vec<T>) {
    let &[batch, channels, ref spatial @ ..] = shape else {
        return (Shape::from_slice(shape), values.into());
    };
    let plane: usize = spatial.iter().product();
    let to = [batch].into_iter().chain(spatial.iter().copied()).chain([channels]).collect();
    (to, exchanged(batch, channels, plane, values))
}

/// [batch, rows, columns] as [batch, columns, rows].
fn exchanged<T: Copy>(batch: usize, rows: usize, columns: usize, values: &[T]) -> Vec<T> {
    let places = (0..batch).flat_map(|b| {
        (0..columns).flat_map(move |column| (0..rows).map(move |row| (b * rows + row) * columns + column))
    });
    places.map(|at| values[at]).collect()
}
