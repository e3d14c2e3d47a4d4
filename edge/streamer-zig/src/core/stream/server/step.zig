//! The results of the stream server besides packets: which bytes to send, and what a device
//! reported.

const std = @import("std");
const base = @import("base");
const wire = @import("wire").stream;
const Endpoint = base.Endpoint;
const Uuid = base.Uuid;
const assert = std.debug.assert;

pub const read_size_buckets = 16;

/// A valid READ: in a session, from its address, of its version, within the disk and the limits.
pub const ReadRequest = struct {
    boot_id: Uuid,
    version_id: Uuid,
    to: Endpoint,
    session_id: u64,
    version: wire.Version,
    /// The newest counter of the session's packets.
    counter: u64 = 0,
    request_id: u32,
    kind: wire.ReadKind,
    /// Byte offset in the disk, or in the profile's document.
    offset: u64,
    length: u32,
    fragment_size: u16,
    /// Bytes of each packet that are not payload.
    overhead: u16,
    /// Not `device_ram`: written blocks lie above the version and must never be left out.
    write_cache: wire.WriteCacheClass,
    /// Points into the request's packet.
    ranges: wire.Ranges,
    /// Its answer may be packed.
    may_pack: bool = false,
    /// Size of a packed answer with the prefixes of all of its fragments; 0: it is plain.
    packed_bytes: u32 = 0,
    /// First READ in the boot's first session since this process started.
    first: bool,
    /// It has arrived before, or names only some fragments: those were missing.
    repeated: bool,
    /// Payload sent for this READ.
    bytes_out: u32,
    packets_out: u16,

    /// UDP payload of all packets sent for this READ, in bytes.
    pub fn wireBytes(read: *const ReadRequest) u64 {
        return read.bytes_out + @as(u64, read.packets_out) * read.overhead;
    }

    pub fn fragments(read: *const ReadRequest) FragmentIterator {
        return .{ .read = read, .length = read.answerBytes() };
    }

    /// Payload of all fragments of the whole answer.
    pub fn answerBytes(read: *const ReadRequest) u32 {
        return if (read.packed_bytes > 0) read.packed_bytes else read.length;
    }

    /// Answers it with `packed_bytes` (0: plainly) from now on. Returns false, and leaves it plain,
    /// if nothing of what it requests is within a packed answer.
    pub fn answerBy(read: *ReadRequest, packed_bytes: u32) bool {
        assert(packed_bytes == 0 or read.may_pack);
        read.packed_bytes = packed_bytes;
        const of = requested(read.ranges, read.answerBytes(), read.fragment_size);
        if (of.packets == 0) return !read.answerBy(0);
        assert(of.bytes <= read.answerBytes());
        read.packets_out = of.packets;
        read.bytes_out = of.bytes;
        return true;
    }
};

/// Fragments that the ranges name of an answer of `length` bytes, and their bytes. What lies beyond
/// it does not count.
pub fn requested(
    ranges: wire.Ranges,
    length: u32,
    fragment_size: u16,
) struct { packets: u16, bytes: u32 } {
    const all = wire.fragmentCount(length, fragment_size);
    if (ranges.count() == 0) return .{ .packets = all, .bytes = length };
    var packets: u16 = 0;
    var has_last = false;
    for (0..ranges.count()) |index| {
        const range = ranges.at(@intCast(index));
        const end = @min(range.first_fragment + range.fragment_count, all);
        packets += end -| range.first_fragment;
        has_last = has_last or (end == all and range.first_fragment < end);
    }
    var bytes = @as(u32, packets) * fragment_size;
    if (has_last)
        bytes -= fragment_size - wire.fragmentLength(length, fragment_size, all - 1);
    return .{ .packets = packets, .bytes = bytes };
}

pub fn isWithin(read: wire.Read, size: u64) bool {
    return read.length <= size and read.offset <= size - read.length;
}

/// A device probes whether a packet of this size arrives.
pub const ProbeRequest = struct {
    session_id: u64,
    request_id: u32,
    /// UDP payload, in bytes.
    size: u16,
};

pub const UsedUnits = struct {
    boot_id: Uuid,
    /// Points into the packet.
    units: wire.profile.Units,
};

pub const FetchedReads = struct {
    boot_id: Uuid,
    /// Points into the packet.
    reads: wire.FetchTimes.Reads,
};

pub const DeviceMachine = struct {
    boot_id: Uuid,
    machine: wire.Machine,
};

pub const DeviceNetwork = struct {
    boot_id: Uuid,
    session_id: u64,
    network: wire.Network,
    passed: Passed,
};

/// What an edge knows of a session's packets beside what its device says.
pub const Passed = struct {
    /// Packets that the device numbered, and those of them that arrived. Both 0 in clear text.
    sent: u64 = 0,
    arrived: u64 = 0,
    /// Numbers that the edge has given to no packet.
    skipped: u64 = 0,
};

pub const Fragment = struct {
    index: u16,
    /// Byte offset in the answer.
    at: u32,
    /// Byte offset in the disk, unless the answer is packed.
    offset: u64,
    length: u16,
    header: [wire.header_size]u8,
};

/// The fragments to send, in ascending order.
pub const FragmentIterator = struct {
    read: *const ReadRequest,
    /// Of the answer.
    length: u32,
    range_index: u16 = 0,
    sent_of_range: u16 = 0,

    pub fn next(iterator: *FragmentIterator) ?Fragment {
        const read = iterator.read;
        const all = wire.fragmentCount(iterator.length, read.fragment_size);
        if (iterator.range_index >= @max(1, read.ranges.count())) return null;
        const range: wire.Range = if (read.ranges.count() == 0)
            .{ .first_fragment = 0, .fragment_count = all }
        else
            read.ranges.at(iterator.range_index);
        const index = range.first_fragment + iterator.sent_of_range;
        // The ranges ascend: nothing is left of a packed answer behind its end.
        if (index >= all) return null;
        assert(iterator.sent_of_range < range.fragment_count);
        iterator.sent_of_range += 1;
        if (iterator.sent_of_range == range.fragment_count) {
            iterator.range_index += 1;
            iterator.sent_of_range = 0;
        }
        const at = @as(u32, index) * read.fragment_size;
        return .{
            .index = index,
            .at = at,
            .offset = read.offset + at,
            .length = wire.fragmentLength(iterator.length, read.fragment_size, index),
            .header = if (read.packed_bytes > 0)
                wire.packedDataHeader(read.session_id, read.request_id, index)
            else
                wire.dataHeader(read.version, read.session_id, read.request_id, index),
        };
    }
};

/// Where the device's writes are kept.
pub const WriteCache = struct {
    class: wire.WriteCacheClass = .device_ram,
    /// Bytes; 0 with `device_ram`, otherwise not 0.
    size: u64 = 0,
    /// Distinguishes this write cache from all others; 0 with `device_ram`, otherwise not 0.
    id: u64 = 0,
};

/// Names a request until it is finished, across changes of its session.
pub const WriteRef = struct { boot_id: Uuid, session_id: u64, request_id: u32 };

/// A valid write: in a session, from its address, within the disk, complete, and not executed yet.
pub const WriteRequest = struct {
    ref: WriteRef,
    /// Byte offset in the disk.
    offset: u64,
    /// Valid until the next packet.
    bytes: []const u8,
};

pub const ControlRequest = struct {
    ref: WriteRef,
    operation: wire.writes.Operation,
    /// Bytes; both are 0 in a flush.
    offset: u64,
    length: u32,
};

pub const Outgoing = struct {
    to: Endpoint,
    /// Points into the reply buffer.
    packet: []const u8,
};

pub const ReadyReport = struct {
    boot_id: Uuid,
    outcome: wire.ReadyOutcome,
    uptime_us: u64,
    code: base.UntrustedText,
    sentence: base.UntrustedText,
    /// The acknowledgement of the first one was lost.
    repeated: bool,
    /// READY_ACK; points into the reply buffer.
    reply: []const u8,
};

/// A device's report, in a session and from its address.
pub const DeviceReport = struct {
    boot_id: Uuid,
    session_id: u64,
    request_id: u32,
    /// Its steps point into the request's packet.
    report: wire.Report,
};

/// A part of what a device says about its boot, in a session and from its address.
pub const AccountReport = struct {
    boot_id: Uuid,
    /// Its bytes point into the request's packet.
    part: wire.Account,
    /// ACCOUNT_ACK; points into the reply buffer.
    reply: []const u8,
};

/// Totals since the boot's first session in this process; a resumption continues them.
pub const Statistics = struct {
    packets_in: u64 = 0,
    bytes_in: u64 = 0,
    packets_out: u64 = 0,
    bytes_out: u64 = 0,
    /// READs that arrived for the first time, and their bytes.
    reads: u64 = 0,
    read_bytes: u64 = 0,
    /// Retransmitted READs, and the fragments they named.
    retries: u64 = 0,
    missing_fragments: u64 = 0,
    /// First-time READs by size; indexed by `readSizeIndex`.
    read_sizes: [read_size_buckets]u64 = @splat(0),
    resumptions: u64 = 0,
};

const testing = std.testing;

test "a packed answer has the fragments that were requested, as far as it has them" {
    for ([_]struct { ranges: []const wire.Range, whole: u32, packets: u16, bytes: u32 }{
        .{ .ranges = &.{}, .whole = 14_000, .packets = 10, .bytes = 14_000 },
        .{
            .ranges = &.{.{ .first_fragment = 2, .fragment_count = 3 }},
            .whole = 14_000,
            .packets = 3,
            .bytes = 3 * 1440,
        },
        .{
            .ranges = &.{
                .{ .first_fragment = 0, .fragment_count = 1 },
                .{ .first_fragment = 8, .fragment_count = 15 },
            },
            .whole = 14_000,
            .packets = 3,
            .bytes = 2 * 1440 + (14_000 - 9 * 1440),
        },
        .{
            .ranges = &.{.{ .first_fragment = 22, .fragment_count = 1 }},
            .whole = 14_000,
            .packets = 0,
            .bytes = 0,
        },
    }) |case| {
        var list: wire.RangeList = .{};
        for (case.ranges) |range| try list.append(range);
        const found = requested(list.view(), case.whole, 1440);
        try testing.expectEqual(case.packets, found.packets);
        try testing.expectEqual(case.bytes, found.bytes);
    }
}
