//! Control flow, pipelines, programs.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use shellparse::{
    Body, Command, Compound, Connector, Function, List, Pipeline, Redirection, RedirectionKind, Simple, parse,
};

use crate::machine::{CLOSED, Frame, INTERRUPTED, MISUNDERSTOOD, Machine};
use crate::pattern;
use crate::state::Shell;
use crate::world::{NotStarted, Opening, World};

/// A part of a pipeline that runs.
enum Started<W: World> {
    Program(W::Child),
    Thread(W::Thread),
    /// It could not be started: its status.
    No(u64),
}

impl<W: World> Machine<W> {
    /// Runs a text; the status is in the state.
    pub fn text(&mut self, text: &str) {
        if let Some(body) = self.parsed(text, None) {
            self.body(&body);
        }
    }

    /// Runs what was parsed.
    pub fn body(&mut self, body: &Body) {
        self.lists(body);
        self.go();
    }

    /// Parses a text, or says what is wrong with it.
    pub(crate) fn parsed(&mut self, text: &str, name: Option<&str>) -> Option<Body> {
        let world = self.world.clone();
        match parse(text, &|| world.room()) {
            Ok(body) => Some(body),
            Err(error) => {
                let (line, column) = error.place(text);
                let name = name.map(|name| alloc::format!("{name}: ")).unwrap_or_default();
                self.fail(MISUNDERSTOOD, &alloc::format!("{name}line {line}, column {column}: {error}"));
                None
            }
        }
    }

    pub(crate) fn lists(&mut self, body: &Body) {
        self.push(Frame::Lists { body: body.clone(), list: 0, pipeline: 0 });
    }

    /// Works until no frame is left.
    pub(crate) fn go(&mut self) {
        loop {
            if self.world.stopped() {
                self.unwind(|_| false);
                self.state.status = INTERRUPTED;
                return;
            }
            if !self.world.room() {
                self.abort("there is not enough memory");
            }
            if self.state.leave.is_some() || core::mem::take(&mut self.aborted) {
                self.unwind(|frame| matches!(frame, Frame::Subshell(_)));
            }
            let Some(frame) = self.frames.pop() else { return };
            self.step(frame);
        }
    }

    fn step(&mut self, frame: Frame<W>) {
        match frame {
            Frame::Lists { body, list, pipeline } => self.next_pipeline(body, list, pipeline),
            Frame::After { negated, since } => {
                if negated {
                    self.state.status = (self.state.status == 0).into();
                }
                if let Some(since) = since {
                    let took = self.world.clock().saturating_sub(since);
                    let text = alloc::format!("real {}.{:03} s\n", took / 1_000_000_000, took / 1_000_000 % 1000);
                    let _ = self.world.write(&self.streams[2], text.as_bytes());
                }
            }
            Frame::If { compound, clause } => self.branch(compound, clause),
            Frame::Loop { compound, tested, status } => self.turn(compound, tested, status),
            Frame::For { compound, mut words } => {
                let Compound::For { name, body, .. } = &*compound else { return };
                let Some(word) = words.next() else { return };
                if let Err(cause) = self.state.set(name, &word, false) {
                    return self.abort(&cause);
                }
                let body = body.clone();
                self.push(Frame::For { compound, words });
                self.lists(&body);
            }
            Frame::Run(words) => self.run(words),
            Frame::Source => {}
            frame => self.put_back(frame),
        }
    }

    /// The pipeline before this one has run, if there is one.
    fn next_pipeline(&mut self, body: Body, list: usize, mut pipeline: usize) {
        let Some(current) = body.get(list) else { return };
        if pipeline > 0 && self.ends_at_failure(current, pipeline - 1) {
            self.state.leave = Some(self.state.status);
            return;
        }
        if let Some(title) = &current.background {
            self.push(Frame::Lists { body: body.clone(), list: list + 1, pipeline: 0 });
            return self.job(&body, list, title);
        }
        while let Some((connector, next)) = current.pipelines.get(pipeline) {
            if pipeline == 0 || (*connector == Connector::And) == (self.state.status == 0) {
                self.push(Frame::Lists { body: body.clone(), list, pipeline: pipeline + 1 });
                return self.pipeline(next);
            }
            pipeline += 1;
        }
        self.push(Frame::Lists { body, list: list + 1, pipeline: 0 });
    }

    /// `set -e`: whether this pipeline failed, and nobody asks for its status.
    fn ends_at_failure(&self, list: &List, pipeline: usize) -> bool {
        let is_asked = |frame: &Frame<W>| match frame {
            Frame::If { .. } => true,
            Frame::Loop { tested, .. } => *tested,
            Frame::After { negated, .. } => *negated,
            Frame::Lists { body, list, pipeline } => {
                body.get(*list).is_some_and(|list| *pipeline < list.pipelines.len())
            }
            _ => false,
        };
        self.state.stops_at_failure
            && self.state.status != 0
            && pipeline + 1 == list.pipelines.len()
            && !list.pipelines[pipeline].1.negated
            && !self.frames.iter().any(is_asked)
    }

    /// Starts a list of the body in the background.
    fn job(&mut self, body: &Body, list: usize, title: &str) {
        let body = body.clone();
        let job = match self.fork(self.streams.clone()) {
            Ok(job) => job,
            Err(cause) => return self.fail(1, &cause),
        };
        let started = self.world.background(
            &self.state.shell,
            title,
            Box::new(move |world| {
                let mut streams = job.streams;
                streams[0] = world.null();
                let mut job = Self::new(world, job.state, streams);
                for (at, (connector, pipeline)) in body[list].pipelines.iter().enumerate() {
                    let goes_on = at == 0 || (*connector == Connector::And) == (job.state.status == 0);
                    if goes_on && job.state.leave.is_none() {
                        job.pipeline(pipeline);
                        job.go();
                    }
                }
                job.state.leave.unwrap_or(job.state.status)
            }),
        );
        match started {
            Ok(()) => self.state.status = 0,
            Err(cause) => self.fail(1, &alloc::format!("no background job: {cause}")),
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        if pipeline.negated || pipeline.timed {
            let since = pipeline.timed.then(|| self.world.clock());
            self.push(Frame::After { negated: pipeline.negated, since });
        }
        match &pipeline.commands[..] {
            [command] => self.command(command),
            commands => self.parts(commands),
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => {
                if let Some(words) = self.prepare(simple) {
                    self.run(words);
                }
            }
            Command::Compound(compound, redirections) => self.redirected(compound, redirections),
            Command::Function(name, function) => {
                Arc::make_mut(&mut self.state.functions).insert(name.clone(), function.clone());
                self.state.status = 0;
            }
        }
    }

    fn redirected(&mut self, compound: &Arc<Compound>, redirections: &[Redirection]) {
        if !redirections.is_empty() && !self.redirect(redirections, true, &[]) {
            return;
        }
        self.compound(compound);
    }

    fn compound(&mut self, compound: &Arc<Compound>) {
        match &**compound {
            Compound::Group(body) => self.lists(body),
            Compound::Subshell(body) => {
                self.push(Frame::Subshell(Box::new(self.state.clone())));
                self.state.shell = Shell::new();
                self.lists(body);
            }
            Compound::If(clauses, _) => {
                self.push(Frame::If { compound: compound.clone(), clause: 0 });
                if let Some((condition, _)) = clauses.first() {
                    self.lists(condition);
                }
            }
            Compound::Loop { condition, .. } => {
                self.push(Frame::Loop { compound: compound.clone(), tested: true, status: 0 });
                self.lists(condition);
            }
            Compound::For { words, .. } => {
                let words = match words {
                    None => self.state.arguments.to_vec(),
                    Some(words) => match self.fields(words) {
                        Ok(words) => words,
                        Err(cause) => return self.abort(&cause),
                    },
                };
                self.state.status = 0;
                self.push(Frame::For { compound: compound.clone(), words: words.into_iter() });
            }
            Compound::Case(word, cases) => {
                let text = match self.joined(word) {
                    Ok(text) => text,
                    Err(cause) => return self.abort(&cause),
                };
                self.state.status = 0;
                for (patterns, body) in cases {
                    for pattern in patterns {
                        match self.pattern(pattern) {
                            Ok(pattern) if pattern::matches(&pattern, &text) => return self.lists(body),
                            Ok(_) => {}
                            Err(cause) => return self.abort(&cause),
                        }
                    }
                }
            }
        }
    }

    /// The condition of this clause has run.
    fn branch(&mut self, compound: Arc<Compound>, clause: usize) {
        let Compound::If(clauses, otherwise) = &*compound else { return };
        if self.state.status == 0 {
            if let Some((_, body)) = clauses.get(clause) {
                self.lists(body);
            }
            return;
        }
        self.state.status = 0;
        match (clauses.get(clause + 1), otherwise) {
            (Some((condition, _)), _) => {
                self.push(Frame::If { compound: compound.clone(), clause: clause + 1 });
                self.lists(condition);
            }
            (None, Some(body)) => self.lists(body),
            (None, None) => {}
        }
    }

    /// The condition of a loop has run, or its body.
    fn turn(&mut self, compound: Arc<Compound>, tested: bool, status: u64) {
        let Compound::Loop { until, condition, body } = &*compound else { return };
        if tested && (self.state.status == 0) == *until {
            self.state.status = status;
            return;
        }
        let next = if tested { body.clone() } else { condition.clone() };
        let status = if tested { status } else { self.state.status };
        self.push(Frame::Loop { compound, tested: !tested, status });
        self.lists(&next);
    }

    /// Opens what is redirected, for a program of these words or without words for other commands; the streams come back when the command
    /// is done. False if that fails; it was said why.
    fn redirect(&mut self, redirections: &[Redirection], is_shared: bool, program: &[String]) -> bool {
        let before = self.streams.clone();
        for redirection in redirections {
            if let Err(cause) = self.open(redirection, is_shared, program) {
                self.streams = before;
                self.fail(MISUNDERSTOOD, &cause);
                return false;
            }
        }
        self.push(Frame::Streams(before));
        true
    }

    fn open(&mut self, redirection: &Redirection, is_shared: bool, program: &[String]) -> Result<(), String> {
        let target = self.joined(&redirection.target)?;
        let opening = match redirection.kind {
            RedirectionKind::Duplicate => {
                let other = target.parse().ok().filter(|other| *other < 3).unwrap_or(0);
                // Two now write there.
                let stream = self.world.shared(self.streams[other].clone())?;
                self.streams[other] = stream.clone();
                self.streams[redirection.stream] = stream;
                return Ok(());
            }
            RedirectionKind::Input => Opening::Read,
            RedirectionKind::Output => Opening::Write,
            RedirectionKind::Append => Opening::Append,
        };
        if target.is_empty() {
            return Err("a redirection without a file name".to_string());
        }
        let path = self.world.absolute(&self.state.directory, &target);
        let stream = self.world.open(&self.state, &path, opening, program);
        let stream = stream.map_err(|cause| alloc::format!("{target}: {cause}"))?;
        self.streams[redirection.stream] = if is_shared { self.world.shared(stream)? } else { stream };
        Ok(())
    }

    /// Expands a simple command, does its redirections and assignments; gives the words left to run. The status is set if nothing is.
    fn prepare(&mut self, simple: &Simple) -> Option<Vec<String>> {
        self.substituted = None;
        let words = match self.fields(&simple.words) {
            Ok(words) => words,
            Err(cause) => {
                self.abort(&cause);
                return None;
            }
        };
        let is_program = words.first().map(|name| self.is_program(name));
        let program = if is_program == Some(true) { &words[..] } else { &[] };
        if !simple.redirections.is_empty() && !self.redirect(&simple.redirections, is_program == Some(false), program) {
            return None;
        }
        let mut before = Vec::new();
        for (name, word) in &simple.assignments {
            let old = self.state.get(name);
            let done = self.joined(word).and_then(|value| self.state.set(name, &value, !words.is_empty()));
            if let Err(cause) = done {
                self.abort(&cause);
                return None;
            }
            before.push((name.clone(), old));
        }
        match words.first() {
            None => {
                self.state.status = self.substituted.unwrap_or(0);
                None
            }
            Some(name) => {
                if !before.is_empty() && !self.is_special(name) {
                    self.push(Frame::Variables(before));
                }
                Some(words)
            }
        }
    }

    /// Whether a command of this name is looked for among the files.
    fn is_program(&self, name: &str) -> bool {
        !self.state.functions.contains_key(name) && !self.is_builtin(name) && !self.world.has_command(name)
    }

    /// Runs a command whose words are expanded.
    fn run(&mut self, words: Vec<String>) {
        let Some(name) = words.first() else { return };
        if let Some(function) = self.state.functions.get(name).cloned() {
            return self.call(&function, &words);
        }
        if self.is_builtin(name) {
            return self.builtin(&words);
        }
        if self.world.has_command(name) {
            self.state.status = self.world.command(&mut self.state, &words, &self.streams);
            return;
        }
        match self.world.spawn(&self.state, &words, &self.streams) {
            Ok(child) => {
                self.state.status = self.world.wait(alloc::vec![child]).pop().unwrap_or(1);
                if self.is_part && self.state.status == CLOSED {
                    self.state.leave = Some(CLOSED);
                }
            }
            Err(cause) => self.not_started(&words, cause),
        }
    }

    fn call(&mut self, function: &Function, words: &[String]) {
        let arguments = core::mem::replace(&mut self.state.arguments, words[1..].into());
        self.push(Frame::Call { arguments, locals: Vec::new() });
        if !self.aborted {
            self.redirected(&function.compound, &function.redirections);
        }
    }

    fn not_started(&mut self, words: &[String], cause: NotStarted) {
        match cause {
            NotStarted::NotFound(name) => {
                self.fail(127, &alloc::format!("{name}: no such command or program (help lists them)"));
            }
            NotStarted::NotAProgram(path) => self.script(&path, &words[0], &words[1..]),
            NotStarted::Misunderstood(cause) => self.fail(MISUNDERSTOOD, &cause),
            NotStarted::Other(cause) => self.fail(126, &cause),
        }
    }

    /// Runs the script at a path in a shell of its own.
    pub(crate) fn script(&mut self, path: &str, name: &str, arguments: &[String]) {
        let text = match self.world.script(path) {
            Ok(text) => text,
            Err(cause) => return self.fail(126, &alloc::format!("{name}: {cause}")),
        };
        let first = text.lines().next().unwrap_or("");
        if let Some(interpreter) = first.strip_prefix("#!")
            && !interpreter.trim().split(' ').next().unwrap_or("").ends_with("sh")
        {
            return self.fail(126, &alloc::format!("{name}: its interpreter is not this shell: {first}"));
        }
        let Some(body) = self.parsed(&text, Some(name)) else { return };
        self.subshell(&body, name, arguments);
    }

    /// Runs a script in a shell of its own.
    pub(crate) fn subshell(&mut self, body: &Body, name: &str, arguments: &[String]) {
        let depth = match self.deeper() {
            Ok(depth) => depth,
            Err(cause) => return self.abort(&cause),
        };
        let state = self.state.for_script(name, arguments);
        self.push(Frame::Subshell(Box::new(self.state.clone())));
        if !self.aborted {
            self.state = state;
            self.state.depth = depth;
            self.lists(body);
        }
    }

    /// Runs the commands of a pipeline at the same time; the status is that of the last one.
    fn parts(&mut self, commands: &[Command]) {
        // A pipeline that cannot have all its pipes does not begin.
        let pipes: Result<Vec<_>, _> = (1..commands.len()).map(|_| self.world.pipe()).collect();
        let mut pipes = match pipes {
            Ok(pipes) => pipes.into_iter(),
            Err(cause) => {
                self.say(&alloc::format!("pipe: {cause}"));
                self.state.status = 1;
                return;
            }
        };
        let mut started = Vec::new();
        let mut input = self.streams[0].clone();
        for command in commands {
            let mut streams = self.streams.clone();
            streams[0] = input.clone();
            if let Some((reads, writes)) = pipes.next() {
                input = reads;
                streams[1] = writes;
            }
            started.push(self.part(command, streams));
        }
        drop(input);
        let last = started.len() - 1;
        let mut children = Vec::new();
        let mut threads = Vec::new();
        for (at, started) in started.into_iter().enumerate() {
            match started {
                Started::Program(child) => children.push((at, child)),
                Started::Thread(thread) => threads.push((at, thread)),
                Started::No(status) if at == last => self.state.status = status,
                Started::No(_) => {}
            }
        }
        let (places, children): (Vec<usize>, Vec<W::Child>) = children.into_iter().unzip();
        for (at, status) in places.into_iter().zip(self.world.wait(children)) {
            if at == last {
                self.state.status = status;
            }
        }
        for (at, thread) in threads {
            let status = self.world.join(thread);
            if at == last {
                self.state.status = status;
            }
        }
    }

    /// Starts a part of a pipeline: a program for itself, all else as a copy of the shell in a thread.
    fn part(&mut self, command: &Command, streams: crate::world::Streams<W>) -> Started<W> {
        let mut copy = match self.fork(streams) {
            Ok(copy) => copy,
            Err(cause) => {
                self.say(&cause);
                return Started::No(1);
            }
        };
        copy.is_part = true;
        match command {
            Command::Simple(simple) => {
                let Some(words) = copy.prepare(simple) else { return Started::No(copy.state.status) };
                if words.first().is_some_and(|name| copy.is_program(name)) {
                    match copy.world.spawn(&copy.state, &words, &copy.streams) {
                        Ok(child) => return Started::Program(child),
                        Err(cause) => copy.not_started(&words, cause),
                    }
                } else {
                    copy.push(Frame::Run(words));
                }
                if copy.frames.is_empty() {
                    return Started::No(copy.state.status);
                }
            }
            command => copy.command(command),
        }
        match self.world.start(Box::new(move || copy.finish())) {
            Ok(thread) => Started::Thread(thread),
            Err(cause) => {
                self.say(&cause);
                Started::No(1)
            }
        }
    }

    /// Does what is left to do; gives the status.
    pub(crate) fn finish(mut self) -> u64 {
        self.go();
        self.state.leave.unwrap_or(self.state.status)
    }
}
