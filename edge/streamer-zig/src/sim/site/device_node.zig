//! A simulated machine: the product's device from power-on to ready, its simulated sockets, and a
//! user who switches it on again when its boot has failed.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const DeviceWrites = @import("device_writes.zig");
const disk_module = @import("disk.zig");
const addresses = @import("addresses.zig");
const EdgeNode = @import("edge_node.zig");
const EventQueue = @import("event_queue.zig");
const Fabric = @import("network.zig").Network;
const HttpLink = @import("http_link.zig");
const Invariants = @import("invariants.zig");
const Mutant = @import("mutants.zig").Mutant;
const assert = std.debug.assert;
const Device = core.device.Device;
const Endpoint = base.Endpoint;
const Link = EventQueue.Link;

pub const DeviceNode = @This();

const dhcp_port = 68;
const first_port = 49152;
/// A machine that takes more actions without a pause never rests.
const actions_max = 100_000;
const idle_wakes_max = 16;
/// On the healed network, whatever attackers do: from power-on to ready, the longest read, and the
/// silence of the edge towards a running device, which reports twice a second.
const boot_us_max = 60 * std.time.us_per_s;
const read_us_max = 5 * std.time.us_per_s;
const silence_us_max = 5 * std.time.us_per_s;

device: Device,
link: Link,
mutant: Mutant,
fabric: *Fabric,
edge_count: u8,
/// The edge keeps what the device writes.
writes: *DeviceWrites,
/// The control plane lets the device boot on the healed network.
is_expected: bool = true,
/// Null: the device needs an offer with an address.
own_address: ?base.Ip4,
/// In some runs all devices start with the same xid, which must not matter.
xid_next: u32,
/// After a boot that became ready, the firmware uses the same ones again.
repeats_xids: bool,
was_ready: bool = false,
prng: base.Prng,
/// While faults last, the device is switched on again and again.
boots_ready: u32 = 0,
/// How often its TPM was cleared.
key_number: u32 = 0,
http: HttpLink = .{},
tftp_socket: ?u16 = null,
stream_socket: ?u16 = null,
/// The edge that the socket is connected to.
stream_to: Endpoint = .{ .ip = .zero, .port = 0 },
port_next: u16 = first_port,
wake_at_us: ?u64 = null,
powered_on_healed: bool = false,
/// The edges had heard each other since.
powered_on_settled: bool = false,
idle_wakes: u32 = 0,
is_power_planned: bool = false,

pub fn powerOn(node: *DeviceNode) void {
    const fabric = node.fabric;
    node.is_power_planned = false;
    node.closeSockets();
    // ROMs reuse their ports: a late packet of the previous boot arrives at the same port.
    node.port_next = first_port;
    fabric.links[node.link].setIp(node.own_address);
    // The device takes two consecutive xids.
    if (!node.repeats_xids or !node.was_ready) node.xid_next +%= 16;
    node.was_ready = false;
    var random: Device.Random = .{ .xid = node.xid_next, .nonce_seed = undefined };
    node.prng.fill(&random.nonce_seed);
    node.powered_on_healed = fabric.invariants.healed;
    node.powered_on_settled = fabric.invariants.is_settled;
    node.writes.endBoot(node.keepsWrites());
    fabric.invariants.notePowerOn(node.link);
    fabric.trace.print(fabric.now_us, "device {d} on", .{node.link});
    if (node.mutant == .accept_foreign_fragment)
        node.device.client.options.ciphers = .{ .clear = true };
    node.device.powerOn(fabric.now_us, random);
    node.pump();
}

/// Returns whether the device is ready and nothing more is planned for it.
pub fn isDone(node: *const DeviceNode) bool {
    if (!node.is_expected) return true;
    return node.device.phase == .ready and !node.is_power_planned and node.hasSaidAll();
}

/// Checks once a second that an attached device makes progress.
pub fn checkProgress(node: *const DeviceNode) void {
    if (!node.powered_on_healed or !node.is_expected) return;
    const now_us = node.fabric.now_us;
    const device = &node.device;
    const invariants = node.fabric.invariants;
    if (device.isBooting() and now_us - device.power_on_at_us > boot_us_max)
        invariants.violate(.progress, "device {d} is in {t} after {d} ms", .{
            node.link, device.phase, (now_us - device.power_on_at_us) / std.time.us_per_ms,
        });
    if (device.longest_read_us > read_us_max)
        invariants.violate(.progress, "device {d}: a read took {d} ms", .{
            node.link, device.longest_read_us / std.time.us_per_ms,
        });
    const is_running = device.phase == .ready and device.guest.order == null;
    const silence_us = now_us -| device.client.heardAt();
    if (is_running and silence_us > silence_us_max)
        invariants.violate(.progress, "device {d} runs and has heard nothing for {d} ms", .{
            node.link, silence_us / std.time.us_per_ms,
        });
}

/// Returns whether the write cache has stopped filling and the edge has acknowledged its size.
fn hasSaidAll(node: *const DeviceNode) bool {
    const profile = &node.device.profile.guest;
    const is_filling = profile.write_cache_per_second > 0;
    const last = if (is_filling)
        profile.write_cache_used_max
    else
        core.device.Device.GuestWords.usedAt(profile, 0);
    return node.device.guest.used_known == last;
}

/// Checks that the edge reported the last acknowledged size of the write cache, within 5 %.
pub fn checkWords(node: *const DeviceNode) void {
    if (!node.is_expected) return;
    const invariants = node.fabric.invariants;
    const used = node.device.guest.used_known orelse return;
    const account = invariants.find(node.device.plan.?.boot_id) orelse return;
    // Of a write cache of its own, the edge reports the size itself.
    if (node.device.client.session.?.write_cache != .device_ram) return;
    const size = node.device.profile.guest.write_cache_size;
    const reported = account.write_cache_used orelse
        return invariants.violate(
            .last_words_arrive,
            "device {d}: no report has the size of its write cache",
            .{node.link},
        );
    const difference = @max(used, reported) - @min(used, reported);
    if (difference * 20 < size) return;
    invariants.violate(
        .last_words_arrive,
        "device {d} uses {d} bytes of its write cache, the edge reported {d}",
        .{ node.link, used, reported },
    );
}

pub fn planPowerOn(node: *DeviceNode, after_us: u64) void {
    if (node.is_power_planned) return;
    node.is_power_planned = true;
    node.fabric.plan(node.fabric.now_us + after_us, .{ .power_on = node.link });
}

pub fn wake(node: *DeviceNode) void {
    node.wake_at_us = null;
    node.pump();
}

pub fn receive(node: *DeviceNode, from: Endpoint, to: Endpoint, bytes: []u8) void {
    const now_us = node.fabric.now_us;
    if (to.port == dhcp_port) {
        node.device.receiveDhcp(now_us, bytes);
    } else if (node.tftp_socket == to.port) {
        node.device.receiveTftp(now_us, from, bytes);
    } else if (node.stream_socket == to.port and from.eql(node.stream_to)) {
        if (node.mutant == .accept_foreign_fragment) node.adopt(bytes);
        node.device.receiveStream(now_us, bytes);
    } else return;
    node.pump();
}

pub fn receiveRouterAdvertisement(node: *DeviceNode) void {
    node.device.receiveRouterAdvertisement(node.fabric.now_us);
    node.pump();
}

pub fn stepHttp(
    node: *DeviceNode,
    edges: []EdgeNode,
    serial: u32,
    what: EventQueue.HttpStep,
) void {
    if (serial != node.http.serial or !node.http.is_open) return;
    const edge = addresses.edgeOf(node.http.to.ip) orelse return;
    node.http.step(node.fabric, &edges[edge], &node.device, node.link, what);
    node.pump();
}

/// Does what the device wants done now, and plans its next wake-up.
fn pump(node: *DeviceNode) void {
    const fabric = node.fabric;
    const now_us = fabric.now_us;
    var buffer: Device.Buffer = undefined;
    var count: u32 = 0;
    while (node.device.next(now_us, &buffer)) |action| {
        count += 1;
        if (count > actions_max)
            return fabric.invariants.violate(
                .no_busy_waiting,
                "device {d} never rests",
                .{node.link},
            );
        node.act(action);
    }
    node.checkWindow();
    node.idle_wakes = if (count > 0) 0 else node.idle_wakes;
    var at_us = node.device.deadline() orelse return;
    if (at_us == std.math.maxInt(u64)) return;
    if (at_us <= now_us) {
        node.idle_wakes += 1;
        if (node.idle_wakes > idle_wakes_max)
            return fabric.invariants.violate(
                .no_busy_waiting,
                "device {d} in {t} wants a call at {d}, which is over, and then does nothing",
                .{ node.link, node.device.phase, at_us },
            );
        at_us = now_us + 1;
    }
    if (node.wake_at_us) |planned| if (planned <= at_us) return;
    node.wake_at_us = at_us;
    const is_past = node.mutant == .time_backwards and node.device.phase == .stage2;
    fabric.plan(if (is_past) now_us - 1 else at_us, .{ .device_wake = node.link });
}

fn act(node: *DeviceNode, action: Device.Action) void {
    const fabric = node.fabric;
    switch (action) {
        .dhcp => |packet| {
            const ip: base.Ip4 = fabric.links[node.link].ip() orelse .zero;
            const from: Endpoint = .{ .ip = ip, .port = dhcp_port };
            if (node.device.dhcp.attempts > 1)
                fabric.invariants.noteRetry(node.link, fabric.now_us);
            for (0..node.edge_count) |edge| {
                const to = addresses.endpoint(@intCast(edge), addresses.dhcp_port);
                fabric.sendToEdge(node.link, from, to, packet);
            }
        },
        .use_address => |given| node.useAddress(given.ip),
        .tftp => |packet| {
            const from = node.socket(&node.tftp_socket) orelse return;
            fabric.sendToEdge(node.link, from, packet.to, packet.bytes);
        },
        .solicit_router => fabric.plan(
            fabric.now_us + 1,
            .{ .router_solicitation = node.link },
        ),
        .http_open => |request| node.http.open(fabric, node.link, request.to, request.request),
        .http_close => node.http.close(),
        .stream_open => |to| {
            node.stream_socket = null;
            node.stream_to = to;
        },
        .stream => |packet| {
            const from = node.socket(&node.stream_socket) orelse return;
            fabric.sendToEdge(node.link, from, node.stream_to, packet);
        },
        .read_done => |read| {
            node.checkRead(read.offset, read.bytes);
            if (node.prng.chance(1, 2)) node.write();
        },
        .write_ended => |ended| {
            node.writes.end(fabric.now_us, ended.tag, ended.code == .done);
            fabric.trace.note(@backingInt(ended.code));
        },
        .finished => |outcome| node.finish(outcome),
        .carry_out => |order| node.carryOut(order),
    }
}

/// Writes a block if the device's writes go to the edge. A device that reads ahead writes nothing:
/// it would see old bytes.
fn write(node: *DeviceNode) void {
    const client = &node.device.client;
    const session = client.session orelse return;
    if (session.write_cache == .device_ram or node.device.ahead != null) return;
    const wanted = node.writes.next(&node.prng) orelse return;
    client.submitWrite(wanted.tag, wanted.offset, wanted.bytes) catch
        node.writes.takeBack(wanted.tag);
}

/// Returns whether what the last boot wrote outlives it.
fn keepsWrites(node: *const DeviceNode) bool {
    const session = node.device.client.session orelse return true;
    return session.write_cache == .edge_persistent;
}

fn useAddress(node: *DeviceNode, given: base.Ip4) void {
    const fabric = node.fabric;
    node.closeSockets();
    fabric.links[node.link].setIp(null);
    if (fabric.linkOf(.{ .ip = given, .port = 0 })) |other| if (other != node.link)
        fabric.invariants.violate(
            .one_address_per_device,
            "devices {d} and {d} both have {f}",
            .{ other, node.link, given },
        );
    fabric.links[node.link].setIp(given);
}

fn carryOut(node: *DeviceNode, order: core.stream.Client.Order) void {
    const fabric = node.fabric;
    fabric.trace.print(fabric.now_us, "device {d} carries out an order: {t}", .{
        node.link, order.kind,
    });
    fabric.invariants.noteOrderTaken(order.id, node.link, node.device.plan.?.boot_id);
    node.device.powerOff();
    node.closeSockets();
    // A user switches the device on again.
    node.planPowerOn(if (order.kind == .restart) 1 else std.time.us_per_s);
}

fn finish(node: *DeviceNode, outcome: Device.Outcome) void {
    const fabric = node.fabric;
    fabric.trace.note(@backingInt(std.meta.activeTag(outcome)));
    switch (outcome) {
        .ready => {
            fabric.trace.print(fabric.now_us, "device {d} ready", .{node.link});
            node.boots_ready += 1;
            node.was_ready = true;
            if (node.powered_on_healed and !node.is_expected)
                fabric.invariants.violate(
                    .only_wanted_devices,
                    "device {d} is ready, and the control plane keeps it out",
                    .{node.link},
                );
            const statistics = &node.device.client.statistics;
            fabric.invariants.noteDeviceReady(
                addresses.edgeOf(node.stream_to.ip).?,
                node.device.plan.?.boot_id,
                // A device that reads ahead requests other reads than its system does.
                if (node.device.ahead == null) .{
                    .sent = statistics.requests,
                    .renamed = statistics.renamed_requests,
                } else null,
            );
            // Every device boots once more on the quiet network.
            const again = !fabric.invariants.healed or !node.powered_on_healed;
            // With another edge there, the device runs long enough to fail over.
            const may_fail_over = node.edge_count > 1 and !fabric.invariants.healed;
            const runs_ms: u64 = if (may_fail_over) 6000 else 500;
            if (again) node.planPowerOn(node.prng.between(1, runs_ms) * std.time.us_per_ms);
        },
        .failed => |*failure| {
            fabric.trace.print(fabric.now_us, "device {d} failed in {t}: {f}", .{
                node.link, failure.phase, failure.text,
            });
            fabric.invariants.devices_failed += 1;
            if (failure.phase == .dhcp or failure.phase == .ipxe_dhcp)
                fabric.invariants.noteRetry(node.link, fabric.now_us);
            const text = failure.text.slice();
            const is_of_store = isOfTheStore(text) and !node.powered_on_settled;
            const is_honest = isOfTheNetwork(text) or is_of_store or
                (isOfTheState(text) and fabric.invariants.has_withdrawn) or
                (isOfTwoEdges(text) and fabric.invariants.hadSeveralEdges(node.link)) or
                isOfWriteOwner(text) or
                (isOfUnregistered(text) and fabric.invariants.was_absent[node.link]) or
                (isOfLostWrites(text) and node.hasLostWrites()) or
                (std.mem.eql(u8, text, "token_refused") and node.wasSilent()) or
                (isOfAnother(text) and node.wasImpersonated()) or
                (isOfIdentity(text) and !node.powered_on_healed);
            if (!is_honest)
                fabric.invariants.violate(
                    .no_honest_refusal,
                    "device {d} failed in {t}: {f}",
                    .{ node.link, failure.phase, failure.text },
                );
            if (node.powered_on_healed and node.is_expected and !is_of_store)
                fabric.invariants.violate(
                    .every_boot_finishes,
                    "device {d} on a quiet network failed in {t}: {f}",
                    .{ node.link, failure.phase, failure.text },
                );
            node.planPowerOn(node.prng.between(1, 4) * std.time.us_per_s);
        },
    }
}

/// Recognizes the failures that a bad network causes; every other failure is a fault.
fn isOfTheNetwork(text: []const u8) bool {
    const known = [_][]const u8{
        "no DHCP answer with a boot program", "TFTP: no answer",
        "HTTP: no whole answer",              "nothing read for 120 s",
    };
    for (known) |candidate| if (std.mem.eql(u8, candidate, text)) return true;
    return false;
}

/// Recognizes the failures at an edge that lacks the version, and hears no edge that has it or has
/// waited for that one in vain.
fn isOfTheStore(text: []const u8) bool {
    return std.mem.eql(u8, text, "version_missing") or
        std.mem.eql(u8, text, "bootfarm: the version is not in the store") or
        (std.mem.startsWith(u8, text, "bootfarm: the edge ") and
            std.mem.endsWith(u8, text, " has it, but did not answer the device"));
}

/// Recognizes the failure at another edge while the edge that keeps the device's writes is down.
fn isOfWriteOwner(text: []const u8) bool {
    return std.mem.startsWith(u8, text, "bootfarm: its writes are kept at the edge");
}

/// Recognizes the failures of a device that the control plane has removed.
fn isOfUnregistered(text: []const u8) bool {
    return std.mem.eql(u8, text, "cache_failed") or
        std.mem.startsWith(u8, text, "bootfarm: not registered");
}

/// Recognizes the failures of a boot whose writes were lost with the edge's process.
fn isOfLostWrites(text: []const u8) bool {
    const known = [_][]const u8{ "cache_lost", "its write cache is gone" };
    for (known) |candidate| if (std.mem.eql(u8, candidate, text)) return true;
    return false;
}

/// Recognizes the refusal of a key: the device has none or another one, or somebody was first.
fn isOfIdentity(text: []const u8) bool {
    return std.mem.eql(u8, text, "identity_refused");
}

/// Recognizes the failures of a device whose candidate has ended, since another machine with its
/// MAC address was the first to prove itself.
fn isOfAnother(text: []const u8) bool {
    const known = [_][]const u8{ "token_refused", "HTTP: status 404" };
    for (known) |candidate| if (std.mem.eql(u8, candidate, text)) return true;
    return false;
}

fn wasImpersonated(node: *const DeviceNode) bool {
    if (node.powered_on_healed) return false;
    const invariants = node.fabric.invariants;
    return invariants.wasImpersonated(node.link, node.device.power_on_at_us);
}

/// Another machine took its place while none of its packets arrived.
fn wasSilent(node: *const DeviceNode) bool {
    const plan = node.device.plan orelse return false;
    const account = node.fabric.invariants.find(plan.boot_id) orelse return false;
    return account.was_silent;
}

fn hasLostWrites(node: *const DeviceNode) bool {
    const session = node.device.client.session orelse return false;
    const invariants = node.fabric.invariants;
    const account = invariants.find(node.device.plan.?.boot_id) orelse return false;
    const is_edge = session.write_cache == .edge;
    return is_edge and account.losses != invariants.losses[account.edge];
}

/// Recognizes the failures of a boot that two edges have answered before they heard of each other:
/// one of them withdrew it.
fn isOfTwoEdges(text: []const u8) bool {
    const known = [_][]const u8{ "token_refused", "HTTP: status 404" };
    for (known) |candidate| if (std.mem.eql(u8, candidate, text)) return true;
    return false;
}

/// Recognizes the failures of a boot whose version the control plane has withdrawn.
fn isOfTheState(text: []const u8) bool {
    const known = [_][]const u8{
        "version_missing",  "bootfarm: the desired state does not describe this version",
        // The answer to the request for its kernel.
        "HTTP: status 404",
    };
    for (known) |candidate| if (std.mem.eql(u8, candidate, text)) return true;
    return false;
}

fn checkRead(node: *DeviceNode, offset: u64, bytes: []const u8) void {
    const invariants = node.fabric.invariants;
    const session = &node.device.client.session.?;
    const account = invariants.find(node.device.plan.?.boot_id) orelse
        return invariants.violate(
            .one_version_per_boot,
            "device {d} reads in a boot that never began",
            .{node.link},
        );
    if (!session.version_id.eql(account.version.id))
        invariants.violate(
            .one_version_per_boot,
            "device {d} was given another version",
            .{node.link},
        );
    const asked_at_us = node.device.shownAskedAtUs();
    const wrong = node.writes.firstDifference(account.version, asked_at_us, offset, bytes);
    if (wrong) |at|
        invariants.violate(
            .bytes_equal_version,
            "device {d}: the byte at {d} is wrong, in the read of {d} bytes at {d}",
            .{ node.link, at, bytes.len, offset },
        );
}

fn checkWindow(node: *const DeviceNode) void {
    const client = &node.device.client;
    const session = client.session orelse return;
    if (client.inFlightBytes() <= session.outstanding_bytes_max) return;
    node.fabric.invariants.violate(
        .windows_bounded,
        "device {d} has {d} bytes in flight",
        .{ node.link, client.inFlightBytes() },
    );
}

/// A mutant: makes a fragment of any session one of this device's.
fn adopt(node: *const DeviceNode, bytes: []u8) void {
    const session = node.device.client.session orelse return;
    const packet = stream.parse(bytes) catch return;
    if (packet.body == .data) std.mem.writeInt(u64, bytes[8..16], session.id, .big);
}

fn socket(node: *DeviceNode, place: *?u16) ?Endpoint {
    const ip = node.fabric.links[node.link].ip() orelse return null;
    if (place.* == null) {
        place.* = node.port_next;
        const is_last = node.port_next == std.math.maxInt(u16);
        node.port_next = if (is_last) first_port else node.port_next + 1;
    }
    return .{ .ip = ip, .port = place.*.? };
}

fn closeSockets(node: *DeviceNode) void {
    node.tftp_socket = null;
    node.stream_socket = null;
    node.http.close();
}
