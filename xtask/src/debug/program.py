# Debugging one program of Cairn in gdb. `./x debug --component` writes a script that says which (NAME, CRATE, FILE, CONSTANTS)
# and then runs this.
#
# Programs are linked at the same addresses. A breakpoint of gdb has an address and no address space, so each gets a condition:
# the stopped CPU's memory holds what the program's file does. That is true in each domain of the program, also in one that is
# started later, and needs nothing of the nucleus.

import gdb

# Bytes of a page, and bytes at an instruction that are compared before all others.
PAGE = 4096
FIRST = 64
CONDITION = "$here()"


class Program:
    """What is debugged. `constants`: address, place in the file, and bytes, of what is loaded and never written."""

    def __init__(self, path, constants):
        with open(path, "rb") as file:
            content = file.read()
        self.pages = [
            (address + page, content[place + page:place + min(page + PAGE, count)])
            for address, place, count in constants
            for page in range(0, count, PAGE)
        ]

    def page(self, pc):
        """The page that holds an instruction."""
        return next((page for page in self.pages if page[0] <= pc < page[0] + len(page[1])), None)

    def runs(self, pc):
        """Does the stopped CPU run it? What follows the instruction on its page is there, and usually decides; other pages may
        not have been used yet."""
        address, content = self.page(pc)
        first = content[pc - address:][:FIRST]
        return self.differs(pc, first) is False and not any(self.differs(*page) for page in self.pages)

    @staticmethod
    def differs(address, content):
        """Whether memory has other bytes; None if it has none."""
        try:
            return gdb.selected_inferior().read_memory(address, len(content)).tobytes() != content
        except gdb.MemoryError:
            return None


PROGRAM = Program(FILE, CONSTANTS)


def here():
    """Whether the selected CPU is in the program, or where it has no addresses: in the nucleus."""
    pc = gdb.newest_frame().pc()
    return PROGRAM.page(pc) is None or PROGRAM.runs(pc)


class Here(gdb.Function):
    """`$here()`: not in another program at the same addresses."""

    def __init__(self):
        super().__init__("here")

    def invoke(self):
        return here()


class Entries:
    """Ends a backtrace where the nucleus entered the program: below is nothing."""

    def __init__(self):
        self.name, self.priority, self.enabled = "entries", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        for frame in frames:
            yield frame
            name = frame.inferior_frame().name() or ""
            if name == "_start" or "::enter::" in name:
                return


def confine(breakpoint):
    """Gives a breakpoint that a person makes or changes the condition."""
    condition = breakpoint.condition or ""
    if breakpoint.number > 0 and not condition.startswith(CONDITION):
        breakpoint.condition = f"{CONDITION} && ({condition})" if condition else CONDITION


def warn(_event):
    if not here():
        print(f"This CPU runs another program at the addresses of {NAME}: what is shown of it is wrong.")


Here()
Entries()
gdb.events.breakpoint_created.connect(confine)
gdb.events.breakpoint_modified.connect(confine)
gdb.events.stop.connect(warn)

# Where the function that `runtime::entry!` names is not called `main`: the nucleus enters every program at `_start`.
try:
    gdb.execute(f"tbreak {CRATE}::main")
except gdb.error:
    gdb.execute("tbreak *_start")
