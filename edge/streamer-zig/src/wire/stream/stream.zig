//! Packets of the stream, versions 2 and 3 (packages/proto/STREAM.md): bytes to structs and back.
//! `emit` reproduces every packet that `parse` accepts byte for byte, except a WELCOME that names
//! edges by addresses that this program cannot reach, and nothing that `parse` returns exceeds the
//! limits below. It keeps no state and decides nothing about sessions; packets that are
//! sealed on the wire are in clear text here, with the id of their session in place of their
//! counter (core/stream/seal.zig).

const std = @import("std");
const account = @import("account.zig");
const fetch_times = @import("fetch_times.zig");
const guest = @import("guest.zig");
pub const profile = @import("profile.zig");
const hello_packets = @import("hello.zig");
const lost_packets = @import("lost.zig");
const machine_packet = @import("machine.zig");
const network_packet = @import("network.zig");
const times = @import("times.zig");
const welcome_packet = @import("welcome.zig");
pub const writes = @import("writes.zig");
const assert = std.debug.assert;

/// The high 4 bits of a packet's first byte; the same in all packets of a session.
pub const Version = enum(u4) {
    v2 = 2,
    v3 = 3,

    pub const newest: Version = .v3;

    /// Returns the version of a packet of at least a byte; null: it is of neither.
    pub fn of(packet: []const u8) ?Version {
        return std.enums.fromInt(Version, packet[0] >> 4);
    }

    /// The first byte of packets without flags.
    pub fn byte(version: Version) u8 {
        return @as(u8, @backingInt(version)) << 4;
    }
};

pub const port_default = 6910;
pub const header_size = 16;
/// Behind each sealed packet.
pub const tag_size = 16;
pub const ticket = @import("ticket.zig");

pub const hello_size = hello_packets.hello_size;
pub const hello_size_v3_token = hello_packets.hello_size_v3_token;
pub const hello_size_max = hello_packets.hello_size_max;
pub const cookie_size = hello_packets.cookie_size;
pub const refuse_size = hello_packets.refuse_size;
/// WELCOME without padding, and the offset of its encrypted part.
pub const welcome_size = welcome_packet.welcome_size;
pub const welcome_size_failover = welcome_packet.welcome_size_failover;
pub const welcome_size_unpadded_max = welcome_packet.welcome_size_unpadded_max;
pub const edges_unpadded_max_v3 = welcome_packet.edges_unpadded_max_v3;
pub const welcome_size_known = welcome_packet.welcome_size_known;
const read_size_fixed = 40;
const read_error_size = 20;
pub const no_session_size = 16;
pub const ready_size_min = 40;
pub const ready_code_size_max = 12;
pub const ready_sentence_size_max = 64;
pub const ready_ack_size = 16;

pub const lost_size = lost_packets.lost_size;
pub const lost_ack_size = lost_packets.lost_ack_size;
pub const report_size_max = guest.report_size_max;
pub const report_ack_size = guest.report_ack_size;
pub const steps_max = guest.steps_max;
/// Of a REPORT's steps and read times together.
pub const report_size_min = guest.report_size_min;
pub const steps_size_max = guest.steps_size_max;
const probe_size_min = 40;
pub const Hello = hello_packets.Hello;
pub const HelloKind = hello_packets.HelloKind;
pub const Cookie = hello_packets.Cookie;
pub const DeviceKey = hello_packets.DeviceKey;
pub const DeviceSignature = hello_packets.DeviceSignature;
pub const Refuse = hello_packets.Refuse;
pub const RefuseCode = hello_packets.RefuseCode;
pub const Cipher = hello_packets.Cipher;
pub const Ciphers = hello_packets.Ciphers;
pub const Welcome = welcome_packet.Welcome;
pub const welcomeSizeOf = welcome_packet.sizeOf;
pub const WelcomeKnown = welcome_packet.Known;
pub const welcomeKnown = welcome_packet.parseKnown;
pub const WriteCacheClass = welcome_packet.WriteCacheClass;
pub const Write = writes.Write;
pub const Control = writes.Control;
pub const WriteAck = writes.WriteAck;
pub const WriteCode = writes.WriteCode;
pub const Lost = lost_packets.Lost;
pub const LostAck = lost_packets.LostAck;
pub const LostReason = lost_packets.Reason;
pub const Account = account.Account;
pub const AccountKind = account.Kind;
pub const account_part_size_max = account.part_size_max;
pub const account_size_min = account.account_size_min;
pub const Report = guest.Report;
pub const ReportAck = guest.ReportAck;
pub const Order = guest.Order;
pub const Step = guest.Step;
pub const StepGroup = guest.StepGroup;
pub const Steps = guest.Steps;
pub const StepList = guest.StepList;
pub const ReadTimeKind = times.Kind;
pub const ReadPhase = times.Phase;
pub const ReadTimes = times.ReadTimes;
pub const ReadTimeList = times.ReadTimeList;
pub const FetchTime = fetch_times.FetchTime;
pub const FetchTimes = fetch_times.FetchTimes;
pub const FetchTimeBuffer = fetch_times.FetchTimeBuffer;
pub const Machine = machine_packet.Machine;
pub const machine_size = machine_packet.machine_size;
pub const machine_model_size_max = machine_packet.model_size_max;
pub const Network = network_packet.Network;
pub const NetworkCard = network_packet.Card;
pub const Duplex = network_packet.Duplex;
pub const fetch_times_max = fetch_times.reads_max;
pub const fetch_times_later_ids_max = fetch_times.later_ids_max;

pub const sector_size = 512;
/// Longest READ, in bytes; WELCOME may lower it, never below `read_size_promised`.
pub const read_size_max = 1 << 20;
pub const read_size_promised = 128 << 10;
/// UDP payload in bytes: an IP packet of 9000, 1500 or 576 less 20 for IP and 8 for UDP.
pub const packet_size_max = 8972;
pub const packet_size_ethernet = 1472;
pub const packet_size_min = 548;
/// Payload of a DATA packet in bytes. An unsealed packet could hold 16 more, and does not use them.
pub const fragment_size_max = packet_size_max - header_size - tag_size;
pub const fragment_size_ethernet = packet_size_ethernet - header_size - tag_size;
pub const fragment_size_min = 512;
pub const fragments_max = read_size_max / fragment_size_min;
/// Codecs are numbered from 1; 0 is none.
pub const codecs_max = 8;
/// LZ4 blocks (core/stream/packed.zig).
pub const codec_lz4 = 1;
/// Length of the packed answer at the front of each fragment of it.
pub const packed_prefix_size = 4;
/// In the flags of DATA of version 3: a fragment of a packed answer.
const packed_flag = 1;
/// In the flags of READ of version 3: its answer must not be packed.
const plain_flag = 8;
pub const ranges_max = 64;
/// The largest packet of a device, before and after it is sealed.
pub const request_size_max = header_size + fragment_size_ethernet;
pub const sealed_request_size_max = request_size_max + tag_size;

comptime {
    assert(fragments_max == 2048);
    assert(request_size_max >= read_size_fixed + 4 * ranges_max);
    assert(request_size_max >= report_size_max);
    assert(request_size_max >= ready_size_min + ready_sentence_size_max);
    // A device's packet fits Ethernet's MTU behind the headers of IP and UDP.
    assert(sealed_request_size_max + 28 == 1500);
    assert(packet_size_max + 28 == 9000);
    // 32 KiB in at most 23 packets of Ethernet.
    assert(23 * fragment_size_ethernet >= 32 << 10);
    assert(fragment_size_min + header_size + tag_size <= packet_size_min);
    // Answers to an address that has not shown a cookie are never longer than what it sent.
    assert(cookie_size < hello_size);
    assert(refuse_size < hello_size);
    // Every path on which the stream works takes it.
    assert(welcome_size_failover <= welcome_size_unpadded_max);
    assert(welcome_size_unpadded_max + tag_size == packet_size_min);
    assert(hello_size_max <= packet_size_min);
    assert(header_size + 8 * fetch_times_max + tag_size <= packet_size_min);
    assert(no_session_size < ready_size_min);
    assert(report_ack_size < guest.report_size_min);
    assert(account.account_size_max + tag_size <= packet_size_min);
    assert(@sizeOf(HeaderLayout) == header_size and @alignOf(HeaderLayout) == 1);
    assert(@sizeOf(ReadLayout) == read_size_fixed);
    assert(@sizeOf(ReadErrorLayout) == read_error_size);
    assert(@sizeOf(ReadyLayout) == ready_size_min);
}

pub const Type = enum(u8) {
    used = 0,
    hello = 1,
    cookie = 2,
    welcome = 3,
    refuse = 4,
    read = 5,
    data = 6,
    read_error = 7,
    no_session = 8,
    ready = 9,
    ready_ack = 10,
    report = 11,
    report_ack = 12,
    write = 13,
    control = 14,
    write_ack = 15,
    probe = 16,
    probe_ack = 17,
    /// From here on of version 3 alone.
    keepalive = 18,
    keepalive_ack = 19,
    lost = 20,
    lost_ack = 21,
    fetch_times = 22,
    machine = 23,
    account = 24,
    account_ack = 25,
    network = 26,

    /// Whether its packets are outside of every session.
    fn isOutside(kind: Type) bool {
        return switch (kind) {
            .hello, .cookie, .refuse, .lost, .lost_ack => true,
            else => false,
        };
    }
};

/// One UDP payload. `session_id` is 0 in HELLO, COOKIE, REFUSE, LOST and LOST_ACK only.
pub const Packet = struct {
    version: Version = .v2,
    session_id: u64 = 0,
    request_id: u32 = 0,
    body: Body,
};

pub const Body = union(Type) {
    used: profile.Used,
    hello: Hello,
    cookie: Cookie,
    welcome: Welcome,
    refuse: Refuse,
    read: Read,
    data: Data,
    read_error: ReadError,
    no_session,
    ready: Ready,
    ready_ack,
    report: Report,
    report_ack: ReportAck,
    write: Write,
    control: Control,
    write_ack: WriteAck,
    probe: Probe,
    /// As long as requested, zeros behind the header; the number is its size.
    probe_ack: u16,
    /// The edge asks whether the device of this session is still there.
    keepalive,
    keepalive_ack,
    lost: Lost,
    lost_ack: LostAck,
    fetch_times: FetchTimes,
    machine: Machine,
    account: Account,
    account_ack,
    network: Network,
};

/// Requests an answer of `size` bytes of UDP payload, to test whether it arrives.
pub const Probe = struct {
    /// `packet_size_min` to `packet_size_max`.
    size: u16,
};

/// The target of a READ.
pub const ReadKind = enum(u4) {
    /// The disk: somebody waits for it.
    demand = 0,
    /// The disk, ahead of demand.
    ahead = 1,
    /// The document of the boot profile instead of the disk.
    profile = 2,
};

pub const Read = struct {
    kind: ReadKind = .demand,
    /// Payload of all fragments but the last, as the device requests it for this read.
    fragment_size: u16,
    version_tag: u64,
    /// Bytes; a multiple of 512.
    offset: u64,
    /// Bytes; a multiple of 512, not 0. May exceed `read_size_max`: then it is answered with an
    /// error, not ignored.
    length: u32,
    /// 0 the first time.
    attempt: u16 = 0,
    /// Its answer must not be packed. Version 3 alone, never with kind `profile`.
    is_plain: bool = false,
    ranges: Ranges = .{},
};

/// Fragments `first_fragment` to `first_fragment + fragment_count - 1` of a read.
pub const Range = struct {
    first_fragment: u16,
    fragment_count: u16,
};

/// Ranges in the form of the packet: ascending, disjoint, not empty. No ranges at all means every
/// fragment.
pub const Ranges = struct {
    bytes: []const u8 = &.{},

    pub fn count(ranges: Ranges) u16 {
        return @intCast(@divExact(ranges.bytes.len, 4));
    }

    pub fn at(ranges: Ranges, index: u16) Range {
        const raw = ranges.bytes[@as(usize, index) * 4 ..][0..4];
        return .{
            .first_fragment = std.mem.readInt(u16, raw[0..2], .big),
            .fragment_count = std.mem.readInt(u16, raw[2..4], .big),
        };
    }

    /// Sum of the ranges' fragments; at most `fragments_max`, since they are disjoint.
    pub fn fragmentCount(ranges: Ranges) u16 {
        var sum: u16 = 0;
        for (0..ranges.count()) |index| sum += ranges.at(@intCast(index)).fragment_count;
        return sum;
    }
};

/// Collects the ranges of a READ.
pub const RangeList = struct {
    buffer: [ranges_max * 4]u8 = undefined,
    count: u16 = 0,

    /// `range` must start beyond the end of the previous range.
    pub fn append(list: *RangeList, range: Range) error{Full}!void {
        if (list.count == ranges_max) return error.Full;
        const raw = list.buffer[@as(usize, list.count) * 4 ..][0..4];
        std.mem.writeInt(u16, raw[0..2], range.first_fragment, .big);
        std.mem.writeInt(u16, raw[2..4], range.fragment_count, .big);
        list.count += 1;
    }

    pub fn view(list: *const RangeList) Ranges {
        return .{ .bytes = list.buffer[0 .. @as(usize, list.count) * 4] };
    }
};

pub const Data = struct {
    /// Fragment of the read, from 0.
    index: u16,
    /// Bytes of the packed answer that this is a fragment of; 0: the answer is not packed. Version
    /// 3 alone, and only to a device that offered the session's codec.
    packed_size: u32 = 0,
    payload: []const u8,
};

pub const ReadErrorCode = enum(u16) {
    beyond_the_end = 1,
    store_error = 2,
    version_mismatch = 3,
    too_large = 4,
    /// The edge has lost the device's writes.
    cache_lost = 5,
    /// The write cache is full, and the device's policy is to stop then.
    stopped = 6,
};

pub const ReadError = struct {
    code: ReadErrorCode,
};

pub const ReadyOutcome = enum(u8) { ready = 0, failed = 1 };

pub const Ready = struct {
    outcome: ReadyOutcome,
    /// Microseconds since the device's own power-on, as far as it knows.
    uptime_us: u64,
    /// Printable ASCII, padded with zeros: a code that the edge may know, or the name of the
    /// service that is ready.
    code: [ready_code_size_max]u8 = @splat(0),
    /// Printable ASCII, at most `ready_sentence_size_max` bytes.
    sentence: []const u8 = "",
};

pub const ParseError = error{
    /// Too short or too long for its type, or a READ whose range count contradicts its size.
    WrongSize,
    WrongVersion,
    /// A field that must be 0 is not.
    ReservedNotZero,
    /// A value that the specification does not allow.
    BadValue,
};

/// Parses the packet in `bytes`; slices of the result point into it.
pub fn parse(bytes: []const u8) ParseError!Packet {
    const header: *const HeaderLayout = try overlay(HeaderLayout, bytes, .at_least);
    const version = Version.of(bytes) orelse return error.WrongVersion;
    const kind = std.enums.fromInt(Type, header.type) orelse return error.BadValue;
    if (version == .v2 and header.type > @backingInt(Type.probe_ack)) return error.BadValue;
    switch (kind) {
        .read => {},
        .data => if (header.flags() > @intFromBool(version == .v3)) return error.ReservedNotZero,
        else => if (header.flags() != 0) return error.ReservedNotZero,
    }
    switch (kind) {
        .data, .write, .read => {},
        else => try expectZero(&header.index),
    }
    const session_id = int(u64, &header.session_id);
    const request_id = int(u32, &header.request_id);
    if (kind.isOutside()) {
        if (session_id != 0) return error.ReservedNotZero;
    } else if (session_id == 0) return error.BadValue;
    if (kind.isOutside() or kind == .welcome) {
        if (request_id != 0) return error.ReservedNotZero;
    }
    const body: Body = switch (kind) {
        .used => .{ .used = try profile.parseUsed(bytes) },
        .hello => .{ .hello = try hello_packets.parseHello(version, bytes) },
        .cookie => .{ .cookie = try hello_packets.parseCookie(bytes) },
        .welcome => .{ .welcome = try welcome_packet.parse(version, bytes) },
        .refuse => .{ .refuse = try hello_packets.parseRefuse(version, bytes) },
        .read => .{ .read = try parseRead(version, bytes) },
        .data => .{ .data = try parseData(bytes) },
        .read_error => .{ .read_error = try parseReadError(bytes) },
        .no_session => if (bytes.len == no_session_size) .no_session else return error.WrongSize,
        .keepalive => if (bytes.len == header_size) .keepalive else return error.WrongSize,
        .keepalive_ack => if (bytes.len == header_size) .keepalive_ack else return error.WrongSize,
        .lost => .{ .lost = try lost_packets.parseLost(bytes) },
        .lost_ack => .{ .lost_ack = try lost_packets.parseLostAck(bytes) },
        .fetch_times => .{ .fetch_times = try fetch_times.parse(bytes) },
        .machine => .{ .machine = try machine_packet.parse(bytes) },
        .account => .{ .account = try account.parse(bytes) },
        .account_ack => if (bytes.len == header_size) .account_ack else return error.WrongSize,
        .network => .{ .network = try network_packet.parse(bytes) },
        .ready => .{ .ready = try parseReady(bytes) },
        .ready_ack => if (bytes.len == ready_ack_size) .ready_ack else return error.WrongSize,
        .report => .{ .report = try guest.parseReport(bytes) },
        .report_ack => .{ .report_ack = try guest.parseReportAck(bytes) },
        .write => .{ .write = try writes.parseWrite(bytes) },
        .control => .{ .control = try writes.parseControl(bytes) },
        .write_ack => .{ .write_ack = try writes.parseWriteAck(bytes) },
        .probe => .{ .probe = try parseProbe(bytes) },
        .probe_ack => .{ .probe_ack = try parseProbeAck(bytes) },
    };
    return .{
        .version = version,
        .session_id = session_id,
        .request_id = request_id,
        .body = body,
    };
}

/// Writes `packet` to the front of `out` and returns it. `out` must be large enough
/// (`packet_size_max` always is); every value is one that `parse` accepts.
pub fn emit(packet: Packet, out: []u8) []u8 {
    const header: *HeaderLayout = @ptrCast(out[0..header_size]);
    const kind = std.meta.activeTag(packet.body);
    assert(packet.version == .v3 or @backingInt(kind) <= @backingInt(Type.probe_ack));
    header.* = .{
        .version_and_flags = packet.version.byte(),
        .type = @backingInt(kind),
    };
    std.mem.writeInt(u32, &header.request_id, packet.request_id, .big);
    std.mem.writeInt(u64, &header.session_id, packet.session_id, .big);
    switch (packet.body) {
        .used => |used| return profile.emitUsed(used, out),
        .hello => |*hello| {
            assert(hello.version == packet.version);
            return hello_packets.emitHello(hello, out);
        },
        .cookie => |cookie| return hello_packets.emitCookie(cookie, out),
        .welcome => |welcome| return welcome_packet.emit(packet.version, &welcome, out),
        .refuse => |refuse| return hello_packets.emitRefuse(refuse, out),
        .read => |read| return emitRead(packet.version, read, out),
        .data => |data| return emitData(packet.version, &data, out),
        .read_error => |read_error| {
            const layout = overlayMutable(ReadErrorLayout, out);
            std.mem.writeInt(u16, &layout.code, @backingInt(read_error.code), .big);
            layout.reserved = @splat(0);
            return out[0..read_error_size];
        },
        .no_session, .ready_ack, .keepalive, .keepalive_ack, .account_ack => {
            return out[0..header_size];
        },
        .account => |part| return account.emit(part, out),
        .lost => |*lost| return lost_packets.emitLost(lost, out),
        .lost_ack => |*ack| return lost_packets.emitLostAck(ack, out),
        .fetch_times => |reads| return fetch_times.emit(reads, out),
        .machine => |*machine| return machine_packet.emit(machine, out),
        .network => |*network| return network_packet.emit(network, out),
        .ready => |ready| return emitReady(ready, out),
        .report => |report| return guest.emitReport(report, out),
        .report_ack => |ack| return guest.emitReportAck(ack, out),
        .write => |write| return writes.emitWrite(write, out),
        .control => |control| return writes.emitControl(control, out),
        .write_ack => |ack| return writes.emitWriteAck(ack, out),
        .probe => |probe| {
            @memset(out[header_size..probe_size_min], 0);
            std.mem.writeInt(u16, out[header_size..][0..2], probe.size, .big);
            return out[0..probe_size_min];
        },
        .probe_ack => |size| {
            @memset(out[header_size..size], 0);
            return out[0..size];
        },
    }
}

/// The 16 bytes in front of fragment `index`; for senders that keep header and payload apart.
pub fn dataHeader(
    version: Version,
    session_id: u64,
    request_id: u32,
    index: u16,
) [header_size]u8 {
    assert(index < fragments_max);
    var bytes: [header_size]u8 = @splat(0);
    const header: *HeaderLayout = @ptrCast(&bytes);
    header.* = .{ .version_and_flags = version.byte(), .type = @backingInt(Type.data) };
    std.mem.writeInt(u16, &header.index, index, .big);
    std.mem.writeInt(u32, &header.request_id, request_id, .big);
    std.mem.writeInt(u64, &header.session_id, session_id, .big);
    return bytes;
}

/// The same for a fragment of a packed answer, whose payload begins with the size of that answer.
pub fn packedDataHeader(session_id: u64, request_id: u32, index: u16) [header_size]u8 {
    var bytes = dataHeader(.v3, session_id, request_id, index);
    bytes[0] |= packed_flag;
    return bytes;
}

/// Returns the fragment of a sealed DATA packet that is not packed, from its readable bytes; null:
/// it is none.
pub fn fragmentOf(version: Version, packet: []const u8) ?struct { request_id: u32, index: u16 } {
    if (packet.len <= header_size + tag_size) return null;
    const header: *const HeaderLayout = @ptrCast(packet[0..header_size]);
    if (header.version_and_flags != version.byte() or header.type != @backingInt(Type.data))
        return null;
    return .{ .request_id = int(u32, &header.request_id), .index = int(u16, &header.index) };
}

/// Fragments of a read of `length` bytes; both at least 1.
pub fn fragmentCount(length: u32, fragment_size: u16) u16 {
    assert(length > 0 and length <= read_size_max);
    assert(fragment_size >= fragment_size_min);
    return @intCast(std.math.divCeil(u32, length, fragment_size) catch unreachable);
}

/// Bytes of fragment `index` of a read of `length` bytes.
pub fn fragmentLength(length: u32, fragment_size: u16, index: u16) u16 {
    const begin = @as(u32, index) * fragment_size;
    assert(begin < length);
    return @intCast(@min(fragment_size, length - begin));
}

const HeaderLayout = extern struct {
    version_and_flags: u8,
    type: u8,
    index: [2]u8 = @splat(0),
    request_id: [4]u8 = @splat(0),
    session_id: [8]u8 = @splat(0),

    fn flags(header: *const HeaderLayout) u4 {
        return @truncate(header.version_and_flags);
    }
};

const ReadLayout = extern struct {
    header: HeaderLayout,
    version_tag: [8]u8,
    offset: [8]u8,
    length: [4]u8,
    range_count: [2]u8,
    attempt: [2]u8,
};

const ReadErrorLayout = extern struct {
    header: HeaderLayout,
    code: [2]u8,
    reserved: [2]u8,
};

const ReadyLayout = extern struct {
    header: HeaderLayout,
    outcome: u8,
    reserved: [3]u8,
    uptime_us: [8]u8,
    code: [ready_code_size_max]u8,
};

pub fn overlay(
    comptime Layout: type,
    bytes: []const u8,
    comptime size: enum { exactly, at_least },
) ParseError!*const Layout {
    if (bytes.len < @sizeOf(Layout)) return error.WrongSize;
    if (size == .exactly and bytes.len > @sizeOf(Layout)) return error.WrongSize;
    return @ptrCast(bytes[0..@sizeOf(Layout)]);
}

pub fn overlayMutable(comptime Layout: type, out: []u8) *Layout {
    return @ptrCast(out[0..@sizeOf(Layout)]);
}

pub fn int(comptime T: type, bytes: *const [@divExact(@bitSizeOf(T), 8)]u8) T {
    return std.mem.readInt(T, bytes, .big);
}

pub fn expectZero(bytes: []const u8) ParseError!void {
    if (!std.mem.allEqual(u8, bytes, 0)) return error.ReservedNotZero;
}

fn parseRead(version: Version, bytes: []const u8) ParseError!Read {
    const layout = try overlay(ReadLayout, bytes, .at_least);
    const range_count = int(u16, &layout.range_count);
    if (range_count > ranges_max) return error.BadValue;
    if (bytes.len != read_size_fixed + @as(usize, range_count) * 4) return error.WrongSize;
    const flags = layout.header.flags();
    const is_plain = version == .v3 and flags & plain_flag != 0;
    const kind_flags = if (is_plain) flags - plain_flag else flags;
    const kind = std.enums.fromInt(ReadKind, kind_flags) orelse return error.BadValue;
    if (is_plain and kind == .profile) return error.BadValue;
    const read: Read = .{
        .kind = kind,
        .is_plain = is_plain,
        .fragment_size = int(u16, &layout.header.index),
        .version_tag = int(u64, &layout.version_tag),
        .offset = int(u64, &layout.offset),
        .length = int(u32, &layout.length),
        .attempt = int(u16, &layout.attempt),
        .ranges = .{ .bytes = bytes[read_size_fixed..] },
    };
    if (read.fragment_size < fragment_size_min or read.fragment_size > fragment_size_max)
        return error.BadValue;
    if (read.length == 0 or read.length % sector_size != 0) return error.BadValue;
    if (read.offset % sector_size != 0) return error.BadValue;
    var fragments_end: u32 = 0;
    for (0..range_count) |index| {
        const range = read.ranges.at(@intCast(index));
        if (range.fragment_count == 0) return error.BadValue;
        if (range.first_fragment < fragments_end) return error.BadValue;
        fragments_end = @as(u32, range.first_fragment) + range.fragment_count;
        if (fragments_end > fragments_max) return error.BadValue;
    }
    return read;
}

fn parseData(bytes: []const u8) ParseError!Data {
    const layout = try overlay(HeaderLayout, bytes, .at_least);
    const payload = bytes[header_size..];
    if (payload.len == 0 or payload.len > fragment_size_max) return error.WrongSize;
    const index = int(u16, &layout.index);
    if (index >= fragments_max) return error.BadValue;
    if (layout.flags() == 0) return .{ .index = index, .payload = payload };
    if (payload.len <= packed_prefix_size) return error.WrongSize;
    const content = payload[packed_prefix_size..];
    const packed_size = int(u32, payload[0..packed_prefix_size]);
    // A packed answer is shorter than the read.
    if (packed_size < content.len or packed_size >= read_size_max) return error.BadValue;
    return .{ .index = index, .packed_size = packed_size, .payload = content };
}

fn emitData(version: Version, data: *const Data, out: []u8) []u8 {
    assert(data.payload.len > 0);
    const header: *HeaderLayout = @ptrCast(out[0..header_size]);
    std.mem.writeInt(u16, &header.index, data.index, .big);
    var size: usize = header_size;
    if (data.packed_size > 0) {
        assert(version == .v3);
        assert(data.payload.len <= data.packed_size);
        header.version_and_flags |= packed_flag;
        std.mem.writeInt(u32, out[header_size..][0..packed_prefix_size], data.packed_size, .big);
        size += packed_prefix_size;
    }
    @memcpy(out[size..][0..data.payload.len], data.payload);
    return out[0 .. size + data.payload.len];
}

fn parseProbe(bytes: []const u8) ParseError!Probe {
    if (bytes.len != probe_size_min) return error.WrongSize;
    const size = int(u16, bytes[header_size..][0..2]);
    if (size < packet_size_min or size > packet_size_max) return error.BadValue;
    try expectZero(bytes[header_size + 2 ..]);
    return .{ .size = size };
}

fn parseProbeAck(bytes: []const u8) ParseError!u16 {
    // Its tag has been removed.
    if (bytes.len < packet_size_min - tag_size or bytes.len > packet_size_max)
        return error.WrongSize;
    try expectZero(bytes[header_size..]);
    return @intCast(bytes.len);
}

fn parseReadError(bytes: []const u8) ParseError!ReadError {
    const layout = try overlay(ReadErrorLayout, bytes, .exactly);
    try expectZero(&layout.reserved);
    const code = std.enums.fromInt(ReadErrorCode, int(u16, &layout.code)) orelse
        return error.BadValue;
    return .{ .code = code };
}

fn parseReady(bytes: []const u8) ParseError!Ready {
    const layout = try overlay(ReadyLayout, bytes, .at_least);
    const sentence = bytes[ready_size_min..];
    if (sentence.len > ready_sentence_size_max) return error.WrongSize;
    try expectZero(&layout.reserved);
    const outcome = std.enums.fromInt(ReadyOutcome, layout.outcome) orelse return error.BadValue;
    const code_size = std.mem.findScalar(u8, &layout.code, 0) orelse layout.code.len;
    for (layout.code[0..code_size]) |byte| if (!std.ascii.isPrint(byte)) return error.BadValue;
    try expectZero(layout.code[code_size..]);
    for (sentence) |byte| if (!std.ascii.isPrint(byte)) return error.BadValue;
    return .{
        .outcome = outcome,
        .uptime_us = int(u64, &layout.uptime_us),
        .code = layout.code,
        .sentence = sentence,
    };
}

fn emitReady(ready: Ready, out: []u8) []u8 {
    assert(ready.sentence.len <= ready_sentence_size_max);
    const layout = overlayMutable(ReadyLayout, out);
    layout.outcome = @backingInt(ready.outcome);
    layout.reserved = @splat(0);
    std.mem.writeInt(u64, &layout.uptime_us, ready.uptime_us, .big);
    layout.code = ready.code;
    const size = ready_size_min + ready.sentence.len;
    @memcpy(out[ready_size_min..size], ready.sentence);
    return out[0..size];
}

fn emitRead(version: Version, read: Read, out: []u8) []u8 {
    assert(!read.is_plain or (version == .v3 and read.kind != .profile));
    const layout = overlayMutable(ReadLayout, out);
    layout.header.version_and_flags |= @backingInt(read.kind);
    if (read.is_plain) layout.header.version_and_flags |= plain_flag;
    std.mem.writeInt(u16, &layout.header.index, read.fragment_size, .big);
    std.mem.writeInt(u64, &layout.version_tag, read.version_tag, .big);
    std.mem.writeInt(u64, &layout.offset, read.offset, .big);
    std.mem.writeInt(u32, &layout.length, read.length, .big);
    std.mem.writeInt(u16, &layout.range_count, read.ranges.count(), .big);
    std.mem.writeInt(u16, &layout.attempt, read.attempt, .big);
    const size = read_size_fixed + read.ranges.bytes.len;
    @memcpy(out[read_size_fixed..size], read.ranges.bytes);
    return out[0..size];
}

test {
    _ = fetch_times;
    _ = guest;
    _ = lost_packets;
    _ = machine_packet;
    _ = network_packet;
    _ = profile;
    _ = @import("stream_test.zig");
}
