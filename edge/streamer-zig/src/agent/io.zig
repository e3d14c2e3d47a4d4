//! What the agent may ask of the world. An `Io` is any type with the declarations that `check`
//! names; "no control plane", "no data directory" and "one edge" are ways to implement it, and no
//! state of the agent.
//!
//! - `Version`: an open version: `id`, `disk` (`source()`, `root()`, `size()`), `layer_above`,
//!   `kernel`, `initrd`, `disk_shortage`, `loader_files`, `commandLine()`
//! - `Problem`: why a version cannot be opened; printed by `{f}`, `isGone()`: the store does not
//!   have it, `isFull()`: too many are open
//! - `File`: an open file of a version, until `closeFile`
//! - `now`, `unixMs`: microseconds of a monotonic clock; milliseconds of the wall clock, which
//!   may be wrong
//! - `random`: fills a buffer with bytes that nobody can guess
//! - `log`: one line for a person
//! - `send`: sends a datagram from one of the edge's ports; it may be lost
//! - `sendRouterMessage`: sends an ICMPv6 message of router discovery on a segment; it may be lost
//! - `findVersion`: an open version
//! - `openVersion`: opens a version that the desired state describes: it is open now, or cannot be,
//!   or a thread opens it, and `Boots.onVersionOpened` follows
//! - `isDamaged`, `storeRevision`: whether the store's own check has found a version damaged; a
//!   number that changes with the answers, and when the store has other versions
//! - `readImage`: has a thread read the head of a private image (`private_images.versionBelow`):
//!   `Boots.onImageRead` follows
//! - `mayOpenAhead`: whether there are threads and places for a version that nobody has asked for
//! - `duplicateFile`, `readFile`, `closeFile`: files of versions that outlive the version's own
//!   handle
//! - `bootFiles`: the boot programs of this edge
//! - `journal`, `journalFailover`, `compactJournal`: keep a boot, or that it went on at another
//!   edge, soon and in this order (`journal` is false, and the boot is kept later, if too much
//!   waits); once a second the table
//! - `sendAfterJournal`: sends a datagram of the stream or of TFTP once all records given before
//!   it are kept
//! - `sendAfterOrders`: sends a datagram of the stream once it is kept for which boots the orders
//!   are
//! - `keepLease`: keeps a lease; what `send` sends by DHCP after it waits for it
//! - `keepsReports`, `report`, `isReportLogBehind`, `reportBacklog`: the report log
//! - `onBegin`, `onReport`, `onVersionProblem`: tell the edge's owner that a boot begins, that
//!   it changed, that a version cannot be opened
//! - `onSessions`: sessions of the stream may have changed
//! - `onTftpAck`, `sendBlocks`: an acknowledgement came; reads and sends blocks of a transfer
//! - `isReading`, `read`, `sendProfile`: whether a READ waits already; reads and sends its
//!   bytes; sends a part of the boot profile, filled up with zeros
//! - `startProfileJob`, `takeProfileEvent`: gives the `ProfileWorker` a job, or not if it has
//!   enough to do; what it has done
//! - `onUsed`: a device used what it had read ahead
//! - `startWork`, `endWorkSoon`: run a work of a write layer (`LayerWork.run`) on a thread, or
//!   need not; `Stream.endWork` follows, later
//! - `heldSubject`, `answerHold`, `setWritten`: whose layer somebody else wants, and what he is
//!   answered
//! - `snapshotOrder`, `answerSnapshot`: the layer that somebody takes a snapshot of, and what he is
//!   answered
//! - `isStoreShort`: the file system of write caches is almost full
//! - `setUnreadable`: whether there are places of versions that cannot be read
//! - `writeProblems`: names what is wrong with the edge's disks
//! - `wake`: sends a magic packet to every network of the edge
//! - `powerHook`, `startPowerHook`, `takePowerResult`: the power command: whether there is one
//!   that may run now, runs it for one device, what became of one
//! - `keptRuns`: of the schedules' runs that this process has begun, how many are on the disk, or
//!   were refused by it; their records are given to the runner's journal
//! - `compactSchedules`: keeps the journal of the runs small
//! - `neighbourOf`: the MAC address that an address of an attached network has now, or null
//! - `probeAddress`: asks the network of one of the edge's addresses who has an address; answers go
//!   to `Dhcp.heardHolder`

const base = @import("base");
const core = @import("core");

/// A port of the edge that packets go out from; of DHCP with the index of the edge's address.
pub const Port = union(enum) { dhcp: u8, pxe: u8, tftp, stream, peer };

pub const Report = union(enum) {
    /// JSON of `core.boot.report`.
    boot: []const u8,
    withdrawn: struct { boot_id: base.Uuid, to: base.Uuid },
    waiting: *const core.site.WaitingDevices.Waiting,
    /// JSON of `core.site.DiscoveredDevices`.
    discovered: []const u8,
    /// JSON of `core.site.schedule_report`.
    schedule_run: []const u8,
};

/// How safe a record is: with the kernel, which survives the end of the process, or on the disk,
/// which survives a power failure.
pub const Kept = enum { written, synced };

/// A port whose packets may promise what is kept.
pub const PromisePort = enum { tftp, stream };

/// Whether a device can be switched on by the power command.
pub const PowerHook = enum { none, busy, ready };

pub const PowerJob = struct {
    key: core.site.ScheduleRunner.RunKey,
    device: base.Uuid,
    mac: base.Mac,
    /// The name that a person gave the device.
    name: base.UntrustedText,
    given_us: u64 = 0,
};

pub const PowerResult = struct { job: PowerJob, is_on: bool, text: base.UntrustedText };

/// What became of a version that was to be opened.
pub fn OpenResult(comptime Problem: type) type {
    return union(enum) {
        open,
        /// A thread opens it, or will when it has opened others: ask again then.
        waits,
        problem: Problem,
    };
}

const types = [_][]const u8{ "Version", "Problem", "File" };
const functions = [_][]const u8{
    "now",              "unixMs",           "random",          "log",               "send",
    "findVersion",      "openVersion",      "duplicateFile",   "readFile",          "closeFile",
    "bootFiles",        "journal",          "journalFailover", "compactJournal",    "keepLease",
    "keepsReports",     "report",           "reportBacklog",   "isReportLogBehind", "onBegin",
    "onReport",         "onSessions",       "onTftpAck",       "onVersionProblem",  "sendBlocks",
    "isReading",        "read",             "sendProfile",     "startProfileJob",   "takeProfileEvent",
    "onUsed",           "startWork",        "endWorkSoon",     "heldSubject",       "answerHold",
    "setWritten",       "wake",             "powerHook",       "startPowerHook",    "takePowerResult",
    "compactSchedules", "sendAfterJournal", "sendAfterOrders", "neighbourOf",       "isStoreShort",
    "writeProblems",    "setUnreadable",    "probeAddress",    "keptRuns",          "mayOpenAhead",
    "readImage",        "snapshotOrder",    "answerSnapshot",  "sendRouterMessage", "isDamaged",
    "storeRevision",
};

/// Fails the compilation of an `Io` that lacks something, and names it.
pub fn check(comptime Io: type) void {
    for (types ++ functions) |name| if (!@hasDecl(Io, name))
        @compileError(@typeName(Io) ++ " is no Io of the agent: it has no `" ++ name ++ "`");
}
