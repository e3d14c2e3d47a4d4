//! What goes into the stream client and what comes out of it, besides packets.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const RoundTrip = @import("round_trip.zig");

pub const hello_timeout_us_first = 200 * std.time.us_per_ms;

pub const Identity = struct {
    boot_id: base.Uuid,
    token: [16]u8,
    /// Unguessable; the nonces of all hellos of this boot come from it.
    nonce_seed: [32]u8,
    /// What another process of this device had opened for this boot and leaves behind: it is resumed.
    session: ?Session = null,
};

/// What WELCOME said.
pub const Session = struct {
    id: u64,
    version_tag: u64,
    version_id: base.Uuid,
    /// Bytes.
    disk_size: u64,
    fragment_size: u16,
    outstanding_bytes_max: u32,
    resume_secret: [32]u8,
    /// With `device_ram` the edge takes no writes.
    write_cache: wire.WriteCacheClass = .device_ram,
    write_cache_size: u64 = 0,
    write_cache_id: u64 = 0,
};

pub const ReadyWords = struct {
    code: []const u8 = "",
    sentence: []const u8 = "",

    pub fn paddedCode(words: ReadyWords) [wire.ready_code_size_max]u8 {
        var padded: [wire.ready_code_size_max]u8 = @splat(0);
        const size = @min(words.code.len, padded.len);
        for (padded[0..size], words.code[0..size]) |*kept, byte| kept.* = if (std.ascii.isPrint(byte)) byte else '?';
        return padded;
    }
};

/// The outcome of the boot, until the edge has acknowledged it.
pub const Ready = struct {
    outcome: wire.ReadyOutcome,
    uptime_us: u64,
    code: [wire.ready_code_size_max]u8,
    sentence: base.UntrustedText,
    request_id: u32,
    due_at_us: u64,
    timeout_us: u64,
    acknowledged: bool = false,

    /// READY, when it is time for it.
    pub fn transmit(ready: *Ready, now_us: u64, session_id: u64, out: []u8) ?[]const u8 {
        if (ready.acknowledged or now_us < ready.due_at_us) return null;
        ready.due_at_us = now_us + ready.timeout_us;
        ready.timeout_us = @min(ready.timeout_us * 2, RoundTrip.timeout_us_max);
        return wire.emit(.{ .session_id = session_id, .request_id = ready.request_id, .body = .{ .ready = .{
            .outcome = ready.outcome,
            .uptime_us = ready.uptime_us,
            .code = ready.code,
            .sentence = ready.sentence.slice(),
        } } }, out);
    }
};

pub const WriteCache = struct {
    /// Bytes; more than `size` counts as `size`.
    used: u64,
    /// Bytes, not 0.
    size: u64,
};

/// What the device says of itself.
pub const Report = struct {
    /// Microseconds since the kernel's start, now (CLOCK_BOOTTIME); the client counts on when it repeats the packet.
    uptime_us: u64,
    write_cache: ?WriteCache = null,
    /// All steps that are known, in order of begin, or none where nothing is new about them (`StepList.view`); they
    /// are copied.
    steps: wire.Steps = .{},
};

/// What somebody wants this device to do.
pub const Order = struct {
    kind: Kind,
    id: base.Uuid,

    pub const Kind = enum { power_off, restart };
};

pub const Event = union(enum) {
    /// The session is open; `resumed` when it is not the boot's first.
    established: struct { resumed: bool },
    /// The edge will not serve this boot.
    refused: wire.RefuseCode,
    /// A resumption offered another version or size: a boot never mixes two.
    version_changed,
    /// A resumption found another write cache than the one that was written, or none: nothing of this disk can be believed any more.
    cache_lost,
    /// The write, flush or discard with this tag has ended; all but `done` are failures.
    write_ended: struct { tag: u64, code: wire.WriteCode },
    /// The buffer of the read with this tag is complete.
    read_done: struct { tag: u64, buffer: []u8 },
    read_failed: struct { tag: u64, code: wire.ReadErrorCode },
    ready_acknowledged,
    /// Comes once for each order; the client tells the edge at once that it is taken. Who carries it out waits for the next
    /// `report_acknowledged`, for a second or two at most: then the edge knows, and will not give the order again.
    order: Order,
    /// The edge knows the newest report and the order taken last.
    report_acknowledged,
};

pub const Greeting = struct {
    kind: wire.HelloKind = .token,
    nonce: [16]u8 = @splat(0),
    nonce_serial: u64 = 0,
    cookie: [32]u8 = @splat(0),
    /// When HELLO goes out next.
    due_at_us: u64 = 0,
    timeout_us: u64 = hello_timeout_us_first,
    sent_at_us: u64 = 0,
    /// HELLOs with this cookie.
    sent_count: u32 = 0,
};

/// Events that are no read's.
pub const Unseen = struct {
    established: ?bool = null,
    refused: ?wire.RefuseCode = null,
    version_changed: bool = false,
    cache_lost: bool = false,
    ready_acknowledged: bool = false,
    order: ?Order = null,
    report_acknowledged: bool = false,

    /// What concerns the session, which comes first.
    pub fn ofSession(unseen: *Unseen) ?Event {
        if (unseen.established) |resumed| {
            unseen.established = null;
            return .{ .established = .{ .resumed = resumed } };
        }
        if (unseen.refused) |code| {
            unseen.refused = null;
            return .{ .refused = code };
        }
        if (unseen.version_changed) {
            unseen.version_changed = false;
            return .version_changed;
        }
        if (unseen.cache_lost) {
            unseen.cache_lost = false;
            return .cache_lost;
        }
        return null;
    }

    pub fn ofBoot(unseen: *Unseen) ?Event {
        if (unseen.ready_acknowledged) {
            unseen.ready_acknowledged = false;
            return .ready_acknowledged;
        }
        if (unseen.order) |order| {
            unseen.order = null;
            return .{ .order = order };
        }
        if (unseen.report_acknowledged) {
            unseen.report_acknowledged = false;
            return .report_acknowledged;
        }
        return null;
    }
};

pub const Statistics = struct {
    reads: u64 = 0,
    read_bytes: u64 = 0,
    packets_in: u64 = 0,
    bytes_in: u64 = 0,
    packets_out: u64 = 0,
    bytes_out: u64 = 0,
    /// READs sent again and the fragments they named.
    repeats: u64 = 0,
    missing_fragments: u64 = 0,
    /// Fragments that had come before, or belonged to no read any more.
    unexpected_fragments: u64 = 0,
    store_errors: u64 = 0,
    resumptions: u64 = 0,
    /// Packets that were malformed or not from this session.
    ignored: u64 = 0,
};
