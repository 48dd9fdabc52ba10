//! The queues alone: highest priority first, first come first served within one.
#![forbid(unsafe_code)]

use abi::PRIORITIES;
use abi::sched::ThreadWord;
use proptest::prelude::*;
use scheduling::queues::Queues;
use std::collections::VecDeque;

/// The operations on queues.
#[derive(Clone, Debug)]
enum Step {
    Append(usize, u8),
    Prepend(usize, u8),
    Remove(usize),
    Take,
    TakeAndPutBack,
    /// The running thread yields.
    Rotate(usize, u8),
    /// One wakes, and the next is chosen.
    Pass(usize, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (number, priority) = (1usize..40, 0..PRIORITIES as u8);
    prop_oneof![
        (number.clone(), priority.clone()).prop_map(|(number, priority)| Step::Append(number, priority % 5 * 15)),
        (number.clone(), priority).prop_map(|(number, priority)| Step::Prepend(number, priority % 5 * 15)),
        number.prop_map(Step::Remove),
        Just(Step::Take),
        Just(Step::TakeAndPutBack),
        (1usize..40, 0u8..5).prop_map(|(number, priority)| Step::Rotate(number, priority * 15)),
        (1usize..40, 0u8..5).prop_map(|(number, priority)| Step::Pass(number, priority * 15)),
    ]
}

/// The same with lists that are searched.
#[derive(Default)]
struct Model(Vec<VecDeque<usize>>);

impl Model {
    fn level(&self, number: usize) -> Option<usize> {
        self.0.iter().position(|queue| queue.contains(&number))
    }
    fn remove(&mut self, number: usize) {
        self.0.iter_mut().for_each(|queue| queue.retain(|other| *other != number));
    }
    fn first(&self) -> usize {
        self.0.iter().rev().find_map(|queue| queue.front()).copied().unwrap_or(0)
    }
}

proptest! {
    #[test]
    fn queues_are_lists(steps in prop::collection::vec(step(), 0..300)) {
        let mut queues = Queues::new();
        let mut model = Model(vec![VecDeque::new(); PRIORITIES]);
        for step in steps {
            match step {
                Step::Append(number, priority) => {
                    queues.append(ThreadWord::new(number, priority));
                    if model.level(number) != Some(priority as usize) {
                        model.remove(number);
                        model.0[priority as usize].push_back(number);
                    }
                }
                Step::Prepend(number, priority) => {
                    queues.prepend(ThreadWord::new(number, priority));
                    if model.level(number) != Some(priority as usize) {
                        model.remove(number);
                        model.0[priority as usize].push_front(number);
                    }
                }
                Step::Remove(number) => {
                    prop_assert_eq!(queues.remove(number), model.level(number).is_some());
                    model.remove(number);
                }
                Step::Take => {
                    let first = model.first();
                    model.remove(first);
                    prop_assert_eq!(queues.take(), first);
                }
                Step::Rotate(number, priority) => {
                    let expected = model.0[priority as usize].front().copied().filter(|first| *first == model.first());
                    // The running thread may be in a queue though it was never taken.
                    let expected = expected.filter(|_| model.level(number).is_none());
                    let given = queues.rotate(ThreadWord::new(number, priority));
                    prop_assert_eq!(given, expected);
                    if let Some(first) = given {
                        model.remove(first);
                        model.0[priority as usize].push_back(number);
                        // It is refused, or not.
                        if number % 2 == 0 {
                            queues.put_back(first);
                            model.0[priority as usize].push_front(first);
                        }
                    }
                }
                Step::Pass(number, priority) => {
                    let precedes = model.0[priority as usize..].iter().all(VecDeque::is_empty);
                    let expected = Some(number).filter(|_| precedes && model.level(number).is_none());
                    prop_assert_eq!(queues.pass(ThreadWord::new(number, priority)), expected);
                    if expected.is_some() && number % 2 == 0 {
                        queues.put_back(number);
                        model.0[priority as usize].push_front(number);
                    }
                }
                Step::TakeAndPutBack => {
                    let number = queues.take();
                    prop_assert_eq!(number, model.first());
                    if number != 0 {
                        queues.put_back(number);
                    }
                }
            }
            prop_assert_eq!(queues.top(), model.0.iter().rposition(|queue| !queue.is_empty()));
            for number in 1..40 {
                prop_assert_eq!(queues.level(number), model.level(number));
            }
            let odd = model.0.iter().rev().flatten().find(|number| *number % 2 == 1);
            prop_assert_eq!(queues.find(100, |number| number % 2 == 1).map(|(number, _)| number), odd.copied());
        }
    }
}
