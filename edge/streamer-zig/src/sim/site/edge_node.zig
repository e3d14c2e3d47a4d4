//! The simulated edge: the real DHCP service, TFTP server, stream server and boot table behind made-up sockets. A crash
//! loses all of them; what comes back is what the journal kept.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const Boots = @import("boots.zig");
const EdgeStream = @import("edge_stream.zig");
const EdgeTftp = @import("edge_tftp.zig");
const Disk = @import("disk.zig");
const Fabric = @import("fabric.zig");
const Journal = @import("journal.zig");
const Ledger = @import("ledger.zig");
const Plant = @import("plant.zig").Plant;
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const DhcpService = core.dhcp.Service;

pub const EdgeNode = @This();

pub const ip: base.Ip4 = .init(10, 77, 0, 1);
pub const dhcp_port = 67;
pub const tftp_port = 69;
pub const http_port = 6980;
pub const stream_port = 6910;
pub const pool_first: base.Ip4 = .init(10, 77, 0, 10);

const sessions_max = 128;
const boots_kept_max = 96;
const nbp_size = 61 * 1432 + 77;
const kernel_size = 300_000;
const initrd_size = 150_000;
const orders_max = 16;
const published: core.tftp.Server.Catalogue.Fixed = .{ .files = &.{.{ .name = "undionly.kpxe", .size = nbp_size }} };

gpa: std.mem.Allocator,
fabric: *Fabric,
journal: *Journal,
disk: *Disk,
prng: *base.Prng,
versions: *const [Boots.versions_max]Disk.Version,
plant: Plant,
mode: DhcpService.Mode,
/// Hardly more addresses than devices.
pool_size: u8,
/// Which version devices get that begin a boot now.
version_index: u8 = 0,
/// Grows with each start; connections of an earlier one are gone.
generation: u32 = 0,
process: ?*Process = null,
tftp_wake_at_us: ?u64 = null,
/// Of the desired state; none goes from it before the end.
orders: [orders_max]core.uplink.desired_state.PowerOrder = undefined,
order_count: u8 = 0,

/// What a crash loses.
const Process = struct {
    boots: Boots,
    pool: [1]core.dhcp.network.Pool,
    network: [1]core.dhcp.network.Network,
    dhcp: DhcpService,
    tftp: EdgeTftp,
    stream: EdgeStream,
    reply: DhcpService.ReplyBuffer = undefined,
};

pub fn start(edge: *EdgeNode) error{OutOfMemory}!void {
    assert(edge.process == null);
    const gpa = edge.gpa;
    const now_us = edge.fabric.now_us;
    edge.generation += 1;
    edge.fabric.ledger.generation = edge.generation;
    const process = try gpa.create(Process);
    errdefer gpa.destroy(process);
    var table: core.boot.Table = try .init(gpa, boots_kept_max);
    errdefer table.deinit(gpa);
    edge.journal.load(&table, now_us, edge.plant);
    process.pool = .{.{ .first = pool_first, .last = .fromInt(pool_first.toInt() + edge.pool_size - 1) }};
    process.network = .{.{ .subnet = .of(ip, 24), .mode = edge.mode, .link = 0, .pools = &process.pool }};
    var dhcp: DhcpService = try .init(gpa, .{
        .links = &.{.{ .ip = ip }},
        .networks = &process.network,
        .http_port = http_port,
        .addresses_max = 256,
    });
    errdefer dhcp.deinit(gpa);
    if (dhcp.leasesOf(0)) |leases| edge.journal.loadLeases(leases, now_us, edge.plant);
    var tftp: core.tftp.Server = try .init(gpa, published.catalogue(), .{
        .sessions_max = EdgeTftp.sessions_max,
        .requests_max = EdgeTftp.requests_max,
    });
    errdefer tftp.deinit(gpa);
    var keys: core.stream.Server.Keys = .{ .cookie = undefined, .session = undefined, .resumption = edge.journal.resumption_key };
    edge.prng.fill(&keys.cookie);
    edge.prng.fill(&keys.session);
    if (edge.plant == .forget_resumption_key) edge.prng.fill(&keys.resumption);
    const stream: core.stream.Server = try .init(gpa, .{
        .keys = keys,
        .sessions_max = sessions_max,
        // What is sealed nobody can take for his own, whatever he has forgotten to look at.
        .ciphers = if (edge.plant == .accept_foreign_fragment) .{ .clear = true } else null,
    });
    process.* = .{
        .pool = process.pool,
        .network = process.network,
        .boots = .{
            .table = table,
            .policy = .nothing,
            .journal = edge.journal,
            .ledger = edge.fabric.ledger,
            .prng = edge.prng,
            .versions = edge.versions,
        },
        .dhcp = dhcp,
        .tftp = .{ .server = tftp, .boots = &process.boots, .fabric = edge.fabric, .own = endpoint(tftp_port) },
        .stream = .{
            .server = stream,
            .boots = &process.boots,
            .fabric = edge.fabric,
            .disk = edge.disk,
            .plant = edge.plant,
            .own = endpoint(stream_port),
        },
    };
    edge.process = process;
    edge.tftp_wake_at_us = null;
    edge.assign(edge.version_index);
    edge.journal.loadOrders(&process.boots.orders, edge.plant);
    process.boots.takeOrders(edge.orders[0..edge.order_count]);
}

/// Everything in memory is gone, without a last word.
pub fn crash(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    process.boots.table.deinit(edge.gpa);
    process.dhcp.deinit(edge.gpa);
    process.tftp.server.deinit(edge.gpa);
    process.stream.server.deinit(edge.gpa);
    edge.gpa.destroy(process);
    edge.process = null;
}

/// Boots that begin from now on get this version.
pub fn assign(edge: *EdgeNode, version_index: u8) void {
    edge.version_index = version_index;
    const process = edge.process orelse return;
    process.boots.policy = .standalone(.{
        .assignment = .{
            .version_id = edge.versions[version_index].id,
            .loader_files = .{ .kernel = true, .initrd = true },
        },
        .command_line = "quiet",
    });
}

/// The desired state says that this device is to do something.
pub fn order(edge: *EdgeNode, device: u8) void {
    if (edge.order_count == orders_max) return;
    var id: [16]u8 = undefined;
    edge.prng.fill(&id);
    edge.orders[edge.order_count] = .{
        .id = .fromRandom(id),
        .deviceId = .zero,
        .mac = Ledger.macOf(device),
        .order = if (edge.prng.chance(2, 3)) .restart else .power_off,
    };
    edge.order_count += 1;
    const process = edge.process orelse return;
    process.boots.takeOrders(edge.orders[0..edge.order_count]);
}

/// A datagram comes in; nobody listens while the edge is down.
pub fn receive(edge: *EdgeNode, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    const process = edge.process orelse return;
    const now_us = edge.fabric.now_us;
    switch (to.port) {
        dhcp_port => edge.receiveDhcp(process, from, bytes),
        tftp_port => process.tftp.receive(now_us, from, bytes),
        stream_port => process.stream.receive(now_us, from, bytes),
        else => {},
    }
    edge.planTftpWake(process);
    edge.fabric.ledger.checkTable(&process.boots.table);
}

pub fn wake(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    edge.tftp_wake_at_us = null;
    process.tftp.tick(edge.fabric.now_us);
    edge.planTftpWake(process);
}

/// Once a second, as the host does.
pub fn second(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    process.boots.tick(edge.fabric.now_us);
    process.stream.server.expire(edge.fabric.now_us);
    edge.fabric.ledger.checkTable(&process.boots.table);
}

fn planTftpWake(edge: *EdgeNode, process: *Process) void {
    const at_us = process.tftp.server.nextDeadline() orelse return;
    if (edge.tftp_wake_at_us) |planned| if (planned <= at_us) return;
    edge.tftp_wake_at_us = at_us;
    edge.fabric.plan(@max(at_us, edge.fabric.now_us), .edge_wake);
}

fn receiveDhcp(edge: *EdgeNode, process: *Process, from: Endpoint, bytes: []const u8) void {
    const now_us = edge.fabric.now_us;
    const boots = &process.boots;
    const service = &process.dhcp;
    var ref: ?Boots.Ref = null;
    const step = switch (service.receive(now_us, .{ .source = from, .port = .dhcp }, bytes, &process.reply)) {
        .network_boot => |*request| answer: {
            ref = boots.forDhcp(now_us, &request.client, request.packet.xid, bytes.len);
            break :answer service.answer(now_us, request, targetOf(boots, ref), &process.reply);
        },
        else => |other| other,
    };
    switch (step) {
        .ignored, .recorded => {},
        .learned => |learned| if (boots.table.findByMac(learned.mac)) |known| {
            boots.get(known).?.facts.ip = learned.ip;
        },
        .reply => |*reply| {
            if (ref) |known| {
                if (reply.ip) |given| if (given.isUnicast()) if (boots.get(known)) |boot| {
                    boot.facts.ip = given;
                };
                boots.apply(known, now_us, .{ .dhcp_answer = .{ .size = @intCast(reply.payload.len) } });
            }
            // Written before the answer goes out.
            if (service.leasesOf(0)) |leases| edge.journal.writeLeases(leases, now_us);
            edge.fabric.sendToDevices(endpoint(dhcp_port), reply.destination, reply.payload, 0);
        },
        .network_boot => unreachable,
    }
}

fn targetOf(boots: *Boots, ref: ?Boots.Ref) DhcpService.BootTarget {
    const boot = boots.get(ref orelse return .ignore) orelse return .ignore;
    if (boot.outcome) |outcome| switch (outcome) {
        .failed, .superseded => return .ignore,
        .ready, .silent, .local_disk => {},
    };
    return .{ .boot = .{
        .handle = .{ .value = boot.identity.handle },
        .programs = .choose(&.{"undionly.kpxe"}),
    } };
}

pub const Response = struct {
    status: u16,
    /// The body; null: `body_size` bytes of no meaning.
    text: ?[]const u8 = null,
    body_size: u64 = 0,
    ref: ?Boots.Ref = null,
    file: core.boot.LoaderFile = .other,
};

/// What a request over HTTP gets. Null: the edge is down.
pub fn respond(edge: *EdgeNode, request: []const u8, peer: base.Ip4, text: *[core.loader.ipxe_script.size_max]u8) ?Response {
    const process = edge.process orelse return null;
    const boots = &process.boots;
    const parsed = switch (wire.http_request.parse(request)) {
        .request => |parsed| parsed,
        .incomplete => return .{ .status = 400 },
        .problem => |problem| return .{ .status = problem.status() },
    };
    const path: core.boot.Path = .parse(parsed.target);
    if (path.handle == null) return .{ .status = 404 };
    const ref = boots.forPath(path.handle, peer) orelse return .{ .status = 404 };
    const boot = boots.get(ref) orelse return .{ .status = 404 };
    const file = std.meta.stringToEnum(core.boot.LoaderFile, path.name);
    var response: Response = .{ .status = 200, .ref = ref, .file = file orelse .script };
    if (std.mem.eql(u8, path.name, "boot.ipxe")) {
        response.text = core.loader.ipxe_script.write(.{
            .identity = boot.identity,
            .http = endpoint(http_port),
            .stream = endpoint(stream_port),
            .has_kernel = true,
            .has_initrd = true,
            .command_line = boots.policy.source.standalone.command_line,
        }, text);
        response.body_size = response.text.?.len;
    } else response.body_size = switch (file orelse return .{ .status = 404 }) {
        .kernel => kernel_size,
        .initrd => initrd_size,
        .script, .other => return .{ .status = 404 },
    };
    boots.apply(ref, edge.fabric.now_us, .{ .loader_begin = response.file });
    return response;
}

/// A piece of a body was taken; `is_last`: all of it has been.
pub fn progress(edge: *EdgeNode, response: *const Response, size: u64, is_last: bool) void {
    const process = edge.process orelse return;
    const ref = response.ref orelse return;
    const now_us = edge.fabric.now_us;
    process.boots.apply(ref, now_us, .{ .loader_traffic = .{ .bytes_out = size, .packets_out = 1 } });
    if (is_last) process.boots.apply(ref, now_us, .{ .loader_end = response.file });
}

pub fn endpoint(port: u16) Endpoint {
    return .{ .ip = ip, .port = port };
}
