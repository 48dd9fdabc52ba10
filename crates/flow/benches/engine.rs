//! The cost of operations of labels on this computer, by the number of handles: `./x labels bench` runs this and draws it.

use criterion::{BenchmarkId, Criterion};
use flow::{Handle, Heap, Label, Level, Pool};
use std::hint::black_box;
use std::time::Duration;

/// Numbers of handles of each label.
const SIZES: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];

/// The handle of this number: spread over all, as those of the nucleus are.
fn handle(number: u64) -> Handle {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Handle::new(spread >> 3).expect("61 bits")
}

/// A label of these handles, each of which has one level or the other.
fn label(pool: &mut Pool<Heap>, default: Level, numbers: impl Iterator<Item = u64>, levels: [Level; 2]) -> Label {
    numbers.fold(Label::of(default), |label, number| set(pool, label, number, levels[number as usize % 2]))
}

/// Takes the label.
fn set(pool: &mut Pool<Heap>, label: Label, number: u64, level: Level) -> Label {
    let next = pool.set(label, handle(number), level).expect("there is room");
    pool.release(label);
    next
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("labels");
    for size in SIZES {
        let pool = &mut Pool::new(Heap::new(1 << 22), 0);
        let one = label(pool, Level::One, 0..size, [Level::Zero, Level::Two]);
        // The same handles, one of which has another level.
        let near = pool.keep(one);
        let near = set(pool, near, size / 2, Level::Three);
        // Other handles, with levels for which no part can be skipped.
        let other = label(pool, Level::Two, size..2 * size, [Level::One, Level::Three]);
        let mut bench = |name: &str, work: &mut dyn FnMut(&mut Pool<Heap>)| {
            group.bench_function(BenchmarkId::new(name, size), |bencher| bencher.iter(|| work(pool)));
        };
        bench("one handle more", &mut |pool| {
            let made = pool.set(one, handle(2 * size), Level::Three).expect("there is room");
            pool.release(made);
        });
        bench("same label", &mut |pool| assert!(pool.is_below(black_box(one), black_box(one))));
        bench("one handle differs", &mut |pool| assert!(pool.is_below(black_box(one), black_box(near))));
        bench("other handles", &mut |pool| assert!(pool.is_below(black_box(one), black_box(other))));
        bench("least upper bound", &mut |pool| {
            let made = pool.higher(one, other).expect("there is room");
            pool.release(made);
        });
        bench("greatest lower bound", &mut |pool| {
            let made = pool.lower(one, other).expect("there is room");
            pool.release(made);
        });
    }
    group.finish();
}

fn main() {
    // The figures are read from its files.
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    engine(&mut criterion);
    criterion.final_summary();
}
