//! Coordinates the packet loop and the thread for store jobs in the use of layers. The loop has the
//! layer of a maintenance version open for the version's device; before a job works on it, the loop
//! closes it and opens it for nobody until the job ends. It does not take it from a device that is
//! still there, and reports which devices are. For a device whose write owner is to be another
//! edge, it reports when it begins no layer any more.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const write_caches = @import("agent").write_caches;
const sys = @import("../sys.zig");
const Io = std.Io;
const Uuid = base.Uuid;
const Written = core.uplink.store_inventory.Written;

pub const LayerHold = @This();

io: Io,
mutex: Io.Mutex = .init,
/// Wakes the thread for store jobs.
wake_fd: i32,
subject: ?Subject = null,
answer: Answer = .waiting,
/// Versions whose devices are there; null: not known yet.
written: ?Written = null,
is_written_news: bool = false,

pub const Subject = write_caches.HoldSubject;
pub const Answer = write_caches.HoldAnswer;

/// Repeated until it is `held`; `end` follows in any case. One subject at a time.
pub fn ask(hold: *LayerHold, subject: Subject) Answer {
    hold.mutex.lockUncancelable(hold.io);
    defer hold.mutex.unlock(hold.io);
    const is_asked = if (hold.subject) |earlier| std.meta.eql(earlier, subject) else false;
    if (!is_asked) {
        hold.subject = subject;
        hold.answer = .waiting;
    }
    return hold.answer;
}

/// The layer may be opened again, if it still exists.
pub fn end(hold: *LayerHold) void {
    hold.mutex.lockUncancelable(hold.io);
    defer hold.mutex.unlock(hold.io);
    hold.subject = null;
    hold.answer = .waiting;
}

/// Returns what devices write now, if it has changed; null: it has not.
pub fn takeWritten(hold: *LayerHold) ?Written {
    hold.mutex.lockUncancelable(hold.io);
    defer hold.mutex.unlock(hold.io);
    if (!hold.is_written_news) return null;
    hold.is_written_news = false;
    return hold.written;
}

/// Called by the packet loop.
pub fn setWritten(hold: *LayerHold, written: *const Written) void {
    {
        hold.mutex.lockUncancelable(hold.io);
        defer hold.mutex.unlock(hold.io);
        if (hold.written) |*known| if (std.mem.eql(
            u8,
            std.mem.sliceAsBytes(known.constSlice()),
            std.mem.sliceAsBytes(written.constSlice()),
        )) return;
        hold.written = written.*;
        hold.is_written_news = true;
    }
    sys.wake(hold.wake_fd);
}

/// Called by the packet loop: returns the requested subject.
pub fn request(hold: *LayerHold) ?Subject {
    hold.mutex.lockUncancelable(hold.io);
    defer hold.mutex.unlock(hold.io);
    return hold.subject;
}

/// Called by the packet loop.
pub fn setAnswer(hold: *LayerHold, subject: Subject, answer: Answer) void {
    {
        hold.mutex.lockUncancelable(hold.io);
        defer hold.mutex.unlock(hold.io);
        const wanted = hold.subject orelse return;
        if (!std.meta.eql(wanted, subject) or hold.answer == answer) return;
        hold.answer = answer;
    }
    sys.wake(hold.wake_fd);
}
