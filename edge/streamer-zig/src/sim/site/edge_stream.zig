//! The stream port of the simulated edge: datagrams to the real stream server, made-up disk bytes back, and what both mean
//! for boots. The host does the same with sockets and files.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").stream;
const Boots = @import("boots.zig");
const CookieAccount = @import("../kit/cookie_account.zig");
const disk_module = @import("disk.zig");
const Fabric = @import("fabric.zig");
const Plant = @import("plant.zig").Plant;
const Endpoint = base.Endpoint;
const StreamServer = core.stream.Server;

pub const EdgeStream = @This();

server: StreamServer,
boots: *Boots,
fabric: *Fabric,
disk: *disk_module,
plant: Plant,
own: Endpoint,
account: CookieAccount = .{},
reads_answered: u64 = 0,
/// What devices have read of any version since the edge's start: the boot profile that every device is handed, right or wrong.
trace: core.profile.Trace = .{},
document: [wire.profile.document_size_max]u8 = @splat(0),
reply: StreamServer.ReplyBuffer = undefined,
packet: [wire.packet_size_max]u8 = undefined,

/// 20 bytes of IP, 8 of UDP.
const overhead_size = 28;

pub fn receive(port: *EdgeStream, now_us: u64, from: Endpoint, bytes: []const u8) void {
    port.account.noteRequest(from, bytes);
    switch (port.server.receive(now_us, from, bytes, &port.reply)) {
        .ignored => {},
        .reply => |packet| if (!port.takePlantedHello(now_us, from, bytes)) port.send(from, packet, 0),
        .admit => |*claim| port.admit(now_us, claim, bytes.len),
        .read => |*read| port.answerRead(now_us, read, bytes.len),
        .probe => |probe| if (port.server.answerProbe(probe, &port.packet)) |packet| port.send(from, packet, 0),
        // No boot here has a write cache at the edge (core/stream/client/writes_test.zig is about those).
        .write, .control, .taken => unreachable,
        .used => |used| for (0..used.units.count()) |index| port.trace.used(used.units.at(@intCast(index))),
        .ready => |*ready| {
            port.becomeReady(now_us, ready);
            port.send(from, ready.reply, 0);
        },
        .report => |*report| {
            const ack = port.takeReport(now_us, report);
            if (port.server.acknowledgeReport(report, ack, &port.reply)) |packet| port.send(from, packet, 0);
        },
    }
    if (port.server.session_count > port.server.sessions.len)
        port.fabric.ledger.violate(.tables_bounded, "{d} sessions at the edge", .{port.server.session_count});
}

fn send(port: *EdgeStream, to: Endpoint, bytes: []const u8, after_us: u64) void {
    port.account.noteAnswer(port.fabric.ledger, to, bytes);
    port.fabric.sendToDevices(port.own, to, bytes, after_us);
}

fn admit(port: *EdgeStream, now_us: u64, claim: *const StreamServer.Claim, size: usize) void {
    const ref = port.boots.table.findById(claim.boot_id);
    if (port.plant == .token_twice and claim.hello.kind == .token) port.server.forget(claim.boot_id);
    const admission = port.server.admit(now_us, claim.*, port.grantOf(ref), &port.reply);
    if (ref) |known| port.noteAdmission(now_us, known, claim, &admission, size);
    if (port.server.showSize(&admission, &port.packet)) |packet| port.send(claim.from, packet, 0);
    if (admission.reply) |packet| port.send(claim.from, packet, 0);
}

fn grantOf(port: *EdgeStream, ref: ?Boots.Ref) StreamServer.Grant {
    const boot = port.boots.get(ref orelse return .unknown) orelse return .unknown;
    if (boot.outcome) |outcome| if (outcome == .superseded) return .unknown;
    var version = port.boots.versionOf(boot) orelse return .version_missing;
    if (port.plant == .version_follows_policy)
        for (port.boots.versions) |*other| if (other.id.eql(port.boots.policy.source.standalone.assignment.version_id)) {
            version = other;
        };
    return .{ .boot = .{
        .token = boot.identity.token,
        .token_nonce = if (port.plant == .token_twice) null else boot.token_nonce,
        .version_id = version.id,
        .disk_size = version.size,
        .profile_size = port.writeDocument(),
    } };
}

fn noteAdmission(
    port: *EdgeStream,
    now_us: u64,
    ref: Boots.Ref,
    claim: *const StreamServer.Claim,
    admission: *const StreamServer.Admission,
    size: usize,
) void {
    const boots = port.boots;
    const boot = boots.get(ref) orelse return;
    switch (admission.outcome) {
        .opened, .resumed => {
            if (admission.outcome == .opened) boot.token_nonce = claim.hello.client_nonce;
            const session = port.server.sessionOf(claim.boot_id) orelse return;
            boots.apply(ref, now_us, .{ .stream_open = .{
                .resumed = admission.outcome == .resumed,
                .mtu = @min(session.packet_size_max, wire.packet_size_ethernet) + overhead_size,
                .cipher = session.cipher(),
            } });
            boots.journalNow(boot);
            if (port.plant == .boot_on_resumption and admission.outcome == .resumed) _ = boots.begin(now_us, boot.identity.mac);
        },
        .token_refused => if (isOfDevice(boot, claim.from.ip) and !boot.stream_was_open)
            boots.apply(ref, now_us, .{ .suspected = .{ .cause = .token_refused } }),
        .version_missing => boots.apply(ref, now_us, .{ .failed = .{ .cause = .version_missing } }),
        .repeated, .busy, .stale, .no_cipher => {},
        .no_cache => unreachable,
    }
    const answered: u64 = if (admission.reply) |packet| packet.len else 0;
    boots.apply(ref, now_us, .{ .stream_traffic = .{
        .bytes_in = size,
        .packets_in = 1,
        .bytes_out = answered,
        .packets_out = @intFromBool(answered > 0),
    } });
}

fn isOfDevice(boot: *const core.boot.Boot, ip: base.Ip4) bool {
    const known = boot.facts.ip orelse return false;
    return known.eql(ip);
}

fn answerRead(port: *EdgeStream, now_us: u64, read: *const StreamServer.ReadRequest, size: usize) void {
    const ref = port.boots.table.findById(read.boot_id) orelse {
        // Its place was given to another boot: the device has to say hello again.
        port.server.forget(read.boot_id);
        return;
    };
    if (read.kind == .profile) return port.sendDocument(read);
    if (read.kind == .demand) port.trace.demand(read.offset, read.length);
    if (port.plant == .deaf_to_reads and read.request_id == 1) return;
    port.boots.apply(ref, now_us, .{ .stream_read = .{
        .size = read.length,
        .attempt = @intFromBool(read.repeated and port.plant != .count_repeats),
        .missing_fragments = if (read.repeated) read.packets_out else 0,
        .mtu = read.fragment_size + read.overhead + overhead_size,
    } });
    if (port.disk.fails()) {
        if (port.fabric.ledger.find(read.boot_id)) |account| account.had_store_error = true;
        port.boots.apply(ref, now_us, .store_error);
        if (port.server.readError(read, .store_error, &port.reply)) |packet| port.send(read.to, packet, 0);
        return;
    }
    port.sendFragments(read);
    port.boots.apply(ref, now_us, .{ .stream_traffic = .{
        .bytes_in = size,
        .packets_in = 1,
        .bytes_out = read.wireBytes(),
        .packets_out = read.packets_out,
    } });
}

/// Puts down what has been read so far; returns its size.
fn writeDocument(port: *EdgeStream) u32 {
    const units = port.trace.slice();
    if (units.len == 0) return 0;
    const size = wire.profile.documentSize(units.len);
    @memset(port.document[0..size], 0);
    for (units, 0..) |unit, index|
        unit.encode(port.document[wire.profile.head_size + index * wire.profile.entry_size ..][0..wire.profile.entry_size]);
    wire.profile.seal(port.document[0..size], @intCast(units.len));
    return size;
}

/// It may have become another since the device was told its size.
fn sendDocument(port: *EdgeStream, read: *const StreamServer.ReadRequest) void {
    var sealer = port.server.sealer(read.session_id) orelse return;
    var fragments = read.fragments();
    while (fragments.next()) |fragment| {
        const payload = port.document[@intCast(fragment.offset)..][0..fragment.length];
        port.send(read.to, sealer.seal(&fragment.header, payload, &port.packet), 0);
    }
}

fn sendFragments(port: *EdgeStream, read: *const StreamServer.ReadRequest) void {
    var sealer = port.server.sealer(read.session_id) orelse return;
    port.reads_answered += 1;
    const version = port.versionServed(read);
    const after_us = port.disk.latencyUs();
    const last_index = wire.fragmentCount(read.length, read.fragment_size) - 1;
    var fragments = read.fragments();
    while (fragments.next()) |fragment| {
        if (port.plant == .forget_last_fragment and fragment.index == last_index) continue;
        var offset = fragment.offset;
        if (port.plant == .shift_fragment and fragment.index == 2) offset -= read.fragment_size;
        var payload: [wire.fragment_size_max]u8 = undefined;
        disk_module.fill(version, offset, payload[0..fragment.length]);
        port.send(read.to, sealer.seal(&fragment.header, payload[0..fragment.length], &port.packet), after_us);
    }
}

fn versionServed(port: *const EdgeStream, read: *const StreamServer.ReadRequest) disk_module.Version {
    const is_stale = port.plant == .stale_read and port.reads_answered % 100 == 99;
    for (port.boots.versions) |version| if (version.id.eql(read.version_id) != is_stale) return version;
    unreachable;
}

fn becomeReady(port: *EdgeStream, now_us: u64, ready: *const StreamServer.ReadyReport) void {
    const ref = port.boots.table.findById(ready.boot_id) orelse return;
    port.boots.apply(ref, now_us, switch (ready.outcome) {
        .ready => .{ .ready = .stream },
        .failed => blk: {
            const failure = core.boot.cause.failureOf(ready.code.slice(), ready.sentence.slice());
            break :blk .{ .failed = .{ .cause = failure.cause, .text = failure.text } };
        },
    });
    if (port.plant != .ready_twice or !ready.repeated) return;
    const boot = port.boots.get(ref) orelse return;
    boot.changed = true;
    boot.live_changes.outcome = true;
    port.boots.settle(boot);
}

fn takeReport(port: *EdgeStream, now_us: u64, said: *const StreamServer.DeviceReport) wire.ReportAck {
    const boots = port.boots;
    if (port.plant == .deaf_to_the_running) if (boots.table.findById(said.boot_id)) |ref| {
        if (boots.get(ref).?.isOver()) return boots.orders.waitingFor(said.boot_id);
    };
    const ack = boots.takeReport(now_us, said);
    if (port.plant != .order_follows_device or ack.order != .none) return ack;
    const account = port.fabric.ledger.find(said.boot_id) orelse return ack;
    for (&boots.orders.bindings) |*binding| {
        const bound = port.fabric.ledger.find(binding.bound.boot_id) orelse continue;
        const is_other = !binding.bound.boot_id.eql(said.boot_id);
        if (is_other and binding.order != .none and bound.device == account.device)
            return .{ .order = binding.order, .order_id = binding.bound.id.bytes };
    }
    return ack;
}

/// True when a planted bug answered instead of the server.
fn takePlantedHello(port: *EdgeStream, now_us: u64, from: Endpoint, bytes: []const u8) bool {
    if (port.plant != .cookie_unchecked and port.plant != .answer_too_long) return false;
    const parsed = wire.parse(bytes) catch return false;
    if (parsed.body != .hello) return false;
    const hello = parsed.body.hello;
    if (port.plant == .answer_too_long) {
        const padding: [wire.hello_size + 1]u8 = @splat(0);
        port.send(from, &padding, 0);
        return true;
    }
    port.admit(now_us, &.{
        .from = from,
        .hello = hello,
        .boot_id = .fromBytes(hello.boot_id),
    }, bytes.len);
    return true;
}
