//! Steps at random, which the engine and the specification judge at once.

use flow::trace::{Mistake, Script, Step, World};
use flow::{Handle, Level, specification as spec};

#[test]
fn engine_and_specification_agree_on_whatever_happens() {
    let (seeds, steps) = if cfg!(miri) { (1, 50) } else { (20, 2_000) };
    let (mut taken, mut refused, mut dead, mut most) = (0, 0, 0, 0);
    for seed in 0..seeds {
        let (mut world, mut script) = (World::new(), Script::new(seed));
        for count in 0..steps {
            let step = script.next(&world);
            let outcome = world.step(&step).unwrap_or_else(|mistake| panic!("seed {seed}, {step:?}: {mistake}"));
            // A script must not run dry: its end counts.
            let Some(outcome) = outcome.filter(|_| count > steps - steps / 10) else { continue };
            taken += usize::from(outcome.delivered);
            refused += usize::from(!outcome.delivered);
            dead += usize::from(outcome.to.is_none());
            most = most.max(outcome.labels.map_or(0, |(send, _)| send.entries.len()));
        }
    }
    // Else nothing would be tried.
    let is_rich = taken > 500 && refused > 500 && dead > 50 && most > 30;
    assert!(cfg!(miri) || is_rich, "{taken} taken, {refused} refused, {dead} to nobody, {most} entries");
}

#[test]
fn a_restarted_domain_has_no_ports_and_no_labels() {
    let (mut world, port) = (World::new(), Handle::new(7).expect("a handle"));
    let send = Step::Send { from: 1, port, optional: spec::Optional::default() };
    assert_eq!(world.step(&send), Err(Mistake::NoDomain(1)));
    for step in [Step::NewDomain(1), Step::NewDomain(2), Step::NewPort(2, port, spec::Label::of(Level::Three))] {
        assert_eq!(world.step(&step), Ok(None));
    }
    let delivered = |world: &mut World| world.step(&send).expect("a domain").expect("a message").delivered;
    // Only its owner may send to a port until that lets others.
    assert!(!delivered(&mut world));
    world.step(&Step::NewHandle(1, port)).expect("a domain");
    assert!(delivered(&mut world));
    world.step(&Step::NewDomain(2)).expect("it begins again");
    assert!(!delivered(&mut world));
    let (_, again) = world.domains().last().expect("a domain");
    assert_eq!((&again.send, &again.receive), (&spec::Label::of(Level::One), &spec::Label::of(Level::Two)));
}
