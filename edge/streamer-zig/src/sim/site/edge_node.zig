//! The simulated edge: the product's agent in a simulated world (edge_io.zig). After a crash only
//! the journal and the disk are left.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const addresses = @import("addresses.zig");
const agent = @import("agent");
const store = @import("store");
const ControlPlane = @import("control_plane.zig");
const EdgeIo = @import("edge_io.zig");
const Disk = @import("disk.zig");
const Fabric = @import("network.zig").Network;
const Journal = @import("journal.zig");
const Invariants = @import("invariants.zig");
const ProfileReads = @import("profile_reads.zig");
const ProfileWorld = @import("profile_world.zig");
const ReportUplink = @import("report_uplink.zig");
const VersionCopies = @import("version_copies.zig");
const RouterSegment = @import("router_segment.zig");
const Mutant = @import("mutants.zig").Mutant;
const SimFiles = @import("../kit/sim_files.zig");
const device_keys = @import("device_keys.zig");
const assert = std.debug.assert;
const Endpoint = base.Endpoint;
const Agent = EdgeIo.Agent;
const WriteCaches = Agent.WriteCaches;
const DhcpService = core.dhcp.Service;

pub const EdgeNode = @This();

const sessions_max = 128;
const boots_kept_max = 384;
const orders_max = 16;
const tftp_sessions_max = 64;
const tftp_requests_max = 64;
const versions_max = ControlPlane.versions_max;

gpa: std.mem.Allocator,
/// The edge's index in the site.
index: u8,
fabric: *Fabric,
journal: Journal,
/// The edge's disk: write layers and the report log.
files: *SimFiles,
reports: ReportUplink,
disk: *Disk,
/// Null where nobody solicits a router.
routers: ?*RouterSegment = null,
/// Null where no device reads.
profile_reads: ?*ProfileReads = null,
prng: *base.Prng,
versions: *const [versions_max]Disk.Version,
copies: VersionCopies = .{},
mutant: Mutant,
mode: DhcpService.Mode,
/// There are only two addresses more than devices.
pool_size: u8,
/// The latest desired state, on the disk; null in standalone use.
box: ?*ControlPlane.StateBox = null,
/// In standalone use: the version of boots that begin now.
version_index: u8 = 0,
/// Grows with each start, which ends the connections of the earlier process.
generation: u32 = 0,
process: ?*Process = null,
heard_keys: device_keys.Heard = .{},
tftp_wake_at_us: ?u64 = null,
peer_wake_at_us: ?u64 = null,
/// Null where no schedule runs, and the edge keeps nothing for it.
wakes: ?EdgeIo.Wakes = null,
/// The orders in the desired state, which keeps each until the end of the run.
orders: [orders_max]core.uplink.desired_state.PowerOrder = undefined,
order_count: u8 = 0,

/// What a crash loses.
const Process = struct {
    io: EdgeIo,
    versions: [versions_max]EdgeIo.Version,
    peers: core.site.PeerTable,
    peer_port: Agent.Peers,
    boots: Agent.Boots,
    pool: [1]core.dhcp.network.Pool,
    network: [1]core.dhcp.network.Network,
    link: [1]core.dhcp.network.Link,
    dhcp: Agent.Dhcp,
    catalogue: Agent.Catalogue,
    tftp: Agent.Tftp,
    stream: Agent.Stream,
    http: Agent.HttpPaths,
    schedules: Agent.Schedules,
    routers: Agent.Routers,
};

pub fn start(edge: *EdgeNode) error{OutOfMemory}!void {
    return edge.startWith(null);
}

/// Starts; `handed_over` is what the program before has left in the same process.
fn startWith(edge: *EdgeNode, handed_over: ?store.Files.Handle) error{OutOfMemory}!void {
    assert(edge.process == null);
    const gpa = edge.gpa;
    const now_us = edge.fabric.now_us;
    edge.generation += 1;
    edge.fabric.invariants.generations[edge.index] = edge.generation;
    try edge.reports.start();
    errdefer edge.reports.crash();
    const process = try gpa.create(Process);
    errdefer gpa.destroy(process);
    try edge.startIo(process);
    errdefer gpa.destroy(process.io.profile_world.worker);
    var table: core.boot.Table = try .init(gpa, .{ .capacity = boots_kept_max });
    errdefer table.deinit(gpa);
    edge.journal.load(&table, now_us, edge.mutant);
    process.peers = try .init(gpa, .{
        .epoch = edge.generation,
        .boots_max = boots_kept_max,
        .others_max = boots_kept_max,
    });
    errdefer process.peers.deinit(gpa);
    process.peer_port = .{ .table = &process.peers, .boots = &process.boots };
    var unregistered: core.boot.UnregisteredLimit =
        try .init(gpa, boots_kept_max, edge.generation);
    errdefer unregistered.deinit(gpa);
    var devices: core.site.DiscoveredDevices = try .init(gpa);
    errdefer devices.deinit(gpa);
    process.boots = .{
        .io = &process.io,
        .table = table,
        .peers = &process.peers,
        .discovery = .{ .devices = devices },
        .unregistered = unregistered,
        .caches = WriteCaches.init(
            gpa,
            &process.io,
            edge.files.files(),
            EdgeIo.layers_max,
            .{},
        ) catch |err| switch (err) {
            error.OutOfMemory => return error.OutOfMemory,
            // Only an edge whose every boot needs a layer refuses to start.
            error.NotWritable => unreachable,
        },
        // Few: the limits are reached.
        .profiles = try .init(gpa, &process.io, .{ .recordings = 3, .documents = 3 }),
    };
    if (handed_over) |handle| process.boots.caches.take(handle);
    try edge.startPorts(process);
    try edge.startSchedules(process);
    edge.process = process;
    edge.tftp_wake_at_us = null;
    edge.peer_wake_at_us = null;
    if (edge.box) |box| edge.useState(process, box) else edge.assign(edge.version_index);
    var iterator = process.boots.table.iterate();
    while (iterator.next()) |boot| process.peers.onBoot(boot);
    edge.flushPeers(process);
    edge.journal.loadOrders(&process.boots.orders, edge.mutant);
    edge.takeOrders(process);
}

fn startIo(edge: *EdgeNode, process: *Process) error{OutOfMemory}!void {
    const gpa = edge.gpa;
    for (&process.versions, edge.versions) |*version, of| version.* = .{
        .id = of.id,
        .is_open = edge.box == null,
        .disk = .{ .of = of },
    };
    const worker = try gpa.create(agent.ProfileWorker(ProfileWorld));
    process.io = .{
        .fabric = edge.fabric,
        .edge = edge.index,
        .journal_of_site = &edge.journal,
        .reports = &edge.reports,
        .disk = edge.disk,
        .profile_world = .{
            .gpa = gpa,
            .fabric = edge.fabric,
            .edge = edge.index,
            .on = edge.files,
            .disk = edge.disk,
            .worker = worker,
        },
        .routers = edge.routers,
        .profile_reads = edge.profile_reads,
        .prng = edge.prng,
        .versions = &process.versions,
        .copies = &edge.copies,
        .mutant = edge.mutant,
        .wakes = edge.wakes,
        .dhcp = &process.dhcp,
        .tftp_port = &process.tftp,
        .stream_port = &process.stream,
    };
    worker.* = .{ .world = &process.io.profile_world, .gpa = gpa };
}

fn startSchedules(edge: *EdgeNode, process: *Process) error{OutOfMemory}!void {
    process.schedules = .{ .runner = .none, .boots = &process.boots };
    if (edge.wakes == null) return;
    const runner = &process.schedules.runner;
    runner.* = try .init(edge.gpa);
    edge.journal.loadRuns(runner, edge.mutant);
    runner.journal = process.io.runJournal();
}

fn startPorts(edge: *EdgeNode, process: *Process) error{OutOfMemory}!void {
    const gpa = edge.gpa;
    const boots = &process.boots;
    const own_ip = addresses.edgeIp(edge.index);
    const first = addresses.poolFirst(edge.index);
    process.pool = .{
        .{ .first = first, .last = .fromInt(first.toInt() + edge.pool_size - 1) },
    };
    process.network = .{.{
        .subnet = .of(own_ip, 24),
        .mode = edge.mode,
        .link = 0,
        .pools = &process.pool,
    }};
    process.link = .{.{ .ip = own_ip }};
    var dhcp: DhcpService = try .init(gpa, .{
        .links = &process.link,
        .networks = &process.network,
        .http_port = addresses.http_port,
    });
    errdefer dhcp.deinit(gpa);
    if (dhcp.leasesOf(0)) |leases| edge.journal.loadLeases(leases, edge.fabric.now_us, edge.mutant);
    process.dhcp = .{ .service = dhcp, .boots = boots };
    boots.leases = &process.dhcp.service;
    const own: core.dhcp.network.Addresses = .{
        .links = &process.link,
        .networks = &process.network,
        .http_port = addresses.http_port,
        .stream_port = addresses.stream_port,
    };
    process.catalogue = try .init(gpa, boots, own, tftp_sessions_max);
    errdefer process.catalogue.deinit(gpa);
    var tftp: core.tftp.Server = try .init(gpa, process.catalogue.tftpCatalogue(), .{
        .sessions_max = tftp_sessions_max,
        .requests_max = tftp_requests_max,
    });
    errdefer tftp.deinit(gpa);
    process.tftp = try .init(gpa, tftp, boots, &process.catalogue);
    var keys: core.stream.Server.Keys = .{
        .cookie = undefined,
        .session = undefined,
        .resumption = edge.journal.resumption_key,
    };
    edge.prng.fill(&keys.cookie);
    edge.prng.fill(&keys.session);
    if (edge.mutant == .forget_resumption_key) edge.prng.fill(&keys.resumption);
    process.stream = try .init(gpa, try .init(gpa, .{
        .keys = keys,
        .sessions_max = sessions_max,
        // A sealed fragment cannot be taken for one's own, even by a client that checks nothing.
        .ciphers = if (edge.mutant == .accept_foreign_fragment) .{ .clear = true } else null,
    }), boots);
    process.http = .{ .boots = boots, .own = own };
    process.routers = .{ .boots = boots };
    _ = process.routers.add(.booting);
    if (edge.routers) |routers| routers.noteStart(edge.index, edge.fabric.now_us);
}

/// Removes the machine with its disk.
pub fn deinit(edge: *EdgeNode) void {
    edge.crash(.{ .is_power_cut = false });
    edge.reports.deinit();
    edge.files.deinit();
    edge.gpa.destroy(edge.files);
    if (edge.box) |box| box.destroy(edge.gpa);
    edge.journal.deinit(edge.gpa);
    edge.* = undefined;
}

/// Another program takes the place of this one in its process; everything in memory is lost but
/// what it is handed. Returns false if this one continues: it has no layers that end with its
/// process, or threads change them.
pub fn exchange(edge: *EdgeNode) error{OutOfMemory}!bool {
    const process = edge.process orelse return false;
    const caches = &process.boots.caches;
    if (caches.volatileCount() == 0 or caches.isBusy()) return false;
    caches.handOver() catch return false;
    const handle = caches.handed_over.?;
    var left_open: std.ArrayList(store.Files.Handle) = .empty;
    defer left_open.deinit(edge.gpa);
    try left_open.append(edge.gpa, handle);
    for (caches.layers[0..caches.top]) |slot| if (slot) |layer| if (layer.is_handed_over)
        try left_open.appendSlice(edge.gpa, &.{ layer.inner.data, layer.inner.sums.?.handle });
    edge.endProgram(process);
    edge.files.exchangeProgram(left_open.items);
    try edge.startWith(handle);
    return true;
}

/// Ends the process at once; everything in memory is lost. A power cut may also lose what was not
/// synced.
pub fn crash(edge: *EdgeNode, how: struct { is_power_cut: bool }) void {
    const process = edge.process orelse return;
    if (how.is_power_cut) edge.reports.forgetUnsynced();
    edge.endProgram(process);
    edge.fabric.invariants.losses[edge.index] += 1;
    if (how.is_power_cut) edge.files.crash() else edge.files.endProcess();
}

fn endProgram(edge: *EdgeNode, process: *Process) void {
    process.io.loseRuns();
    process.schedules.runner.deinit(edge.gpa);
    process.tftp.deinit(edge.gpa);
    process.catalogue.deinit(edge.gpa);
    process.dhcp.service.deinit(edge.gpa);
    process.stream.deinit(edge.gpa);
    process.boots.deinit(edge.gpa);
    process.io.profile_world.deinit();
    process.peers.deinit(edge.gpa);
    edge.reports.crash();
    edge.gpa.destroy(process);
    edge.process = null;
}

/// Puts a new desired state in force, or keeps it for the next process. The edge owns it.
pub fn applyState(edge: *EdgeNode, box: *ControlPlane.StateBox) void {
    if (edge.box) |earlier| assert(box.state.counter > earlier.state.counter);
    if (edge.process) |process| edge.useState(process, box);
    if (edge.box) |earlier| earlier.destroy(edge.gpa);
    edge.box = box;
}

/// Does what edge/edge.zig does with a desired state.
fn useState(edge: *EdgeNode, process: *Process, box: *ControlPlane.StateBox) void {
    process.io.plan = &box.plan;
    process.boots.policy = box.policy;
    process.boots.onState();
    if (edge.wakes != null) process.schedules.setState(edge.fabric.now_us, &box.state);
    process.io.closeUnused(&process.boots.table, &box.state);
    const site = if (box.state.siteEdges) |*site| site else return;
    process.peers.setSite(edge.fabric.now_us, .init(site, box.state.edgeId));
    edge.flushPeers(process);
}

/// Assigns a version to the boots that begin from now on, in standalone use.
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

/// Adds a power order to the desired state.
pub fn order(edge: *EdgeNode, wanted: core.uplink.desired_state.PowerOrder) void {
    if (edge.order_count == orders_max) return;
    edge.orders[edge.order_count] = wanted;
    edge.order_count += 1;
    const process = edge.process orelse return;
    edge.takeOrders(process);
}

/// Binds the orders of a new desired state, or of the one on the disk.
fn takeOrders(edge: *EdgeNode, process: *Process) void {
    const boots = &process.boots;
    boots.orders.update(edge.orders[0..edge.order_count], &boots.table, edge, keepOrder);
}

fn keepOrder(edge: *EdgeNode, bound: core.site.PowerOrders.BoundOrder) void {
    edge.journal.writeOrder(bound);
    edge.fabric.invariants.noteOrder(edge.index, bound);
}

/// Receives a datagram, which is lost while the edge is down.
pub fn receive(edge: *EdgeNode, from: Endpoint, to: Endpoint, bytes: []const u8) void {
    const process = edge.process orelse return;
    const now_us = edge.fabric.now_us;
    switch (to.port) {
        addresses.dhcp_port => process.dhcp.receive(
            &.{ .source = from, .port = .dhcp, .bytes = bytes, .at_us = now_us },
            now_us,
        ),
        addresses.tftp_port => process.tftp.receive(from, bytes, now_us, now_us),
        addresses.stream_port => edge.receiveStream(process, from, bytes),
        addresses.peer_port => process.peer_port.receive(from, bytes, now_us),
        else => {},
    }
    process.boots.caches.beginWorks();
    edge.planTftpWake(process);
    edge.flushPeers(process);
    edge.checkTables(process);
}

/// Receives a message of router discovery of its segment.
pub fn receiveRouterMessage(
    edge: *EdgeNode,
    from: wire.router_discovery.Address,
    bytes: []const u8,
) void {
    const process = edge.process orelse return;
    const routers = edge.routers.?;
    if (routers.loses(edge.fabric.invariants.healed)) return;
    if (bytes[0] == wire.router_discovery.type_advertisement) {
        routers.noteRouter(edge.index, edge.fabric.now_us);
    } else if (wire.router_discovery.macOf(from)) |mac| {
        if (Invariants.deviceOf(mac)) |device| routers.noteAsked(edge.index, device);
    }
    process.routers.receive(edge.fabric.now_us, 0, .{
        .from = from,
        .hop_limit = wire.router_discovery.hop_limit,
        .bytes = bytes,
    });
}

/// Sends the messages to the other edges that are due.
pub fn wakePeers(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    edge.peer_wake_at_us = null;
    edge.flushPeers(process);
}

fn flushPeers(edge: *EdgeNode, process: *Process) void {
    process.peer_port.flush(edge.fabric.now_us);
    const at_us = @max(process.peers.nextDeadline() orelse return, edge.fabric.now_us + 1);
    if (edge.peer_wake_at_us) |planned| if (planned <= at_us) return;
    edge.peer_wake_at_us = at_us;
    edge.fabric.plan(at_us, .{ .peer_wake = edge.index });
}

pub fn wake(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    edge.tftp_wake_at_us = null;
    process.tftp.tick(edge.fabric.now_us);
    edge.planTftpWake(process);
}

/// Ticks the agent once a second, as the host does.
pub fn second(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    process.boots.tick(edge.fabric.now_us);
    // What ends from here on, as by another edge's claim, gives up its recording a second later.
    edge.checkRecordings(process);
    process.peer_port.tick(edge.fabric.now_us);
    process.stream.tick(edge.fabric.now_us);
    process.routers.tick(edge.fabric.now_us);
    edge.flushPeers(process);
    edge.checkTables(process);
}

/// What a boot reads is recorded only while the boot is under way.
fn checkRecordings(edge: *EdgeNode, process: *Process) void {
    const profiles = &process.boots.profiles;
    var count: u32 = 0;
    for (profiles.recordings) |*recording| {
        if (recording.state != .recording) continue;
        count += 1;
        const ref = process.boots.table.findById(recording.boot_id);
        if (ref == null or process.boots.get(ref.?).?.isOver())
            edge.fabric.invariants.violate(.tables_bounded, "the recording of a boot is left", .{});
    }
    if (count != profiles.recording_count)
        edge.fabric.invariants.violate(
            .tables_bounded,
            "{d} boots are recorded, counted are {d}",
            .{ count, profiles.recording_count },
        );
}

/// Runs its schedules, as the host does between packets.
pub fn turnSchedules(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    if (edge.fabric.now_us < process.schedules.next_turn_us) return;
    process.schedules.turn(edge.fabric.now_us);
    edge.flushPeers(process);
    edge.checkTables(process);
}

/// Ends the boots that began before, as if their devices had started elsewhere.
pub fn endBoots(edge: *EdgeNode, before_us: u64) void {
    const process = edge.process orelse return;
    var iterator = process.boots.table.iterate();
    while (iterator.next()) |boot| {
        if (boot.isOver() or boot.started_us >= before_us) continue;
        const ref = process.boots.table.findById(boot.identity.id).?;
        process.boots.supersede(edge.fabric.now_us, ref);
    }
}

/// Returns whether a boot of the device is in progress here.
pub fn hasBoot(edge: *EdgeNode, mac: base.Mac) bool {
    const process = edge.process orelse return false;
    const table = &process.boots.table;
    const boot = table.get(table.findByMac(mac) orelse return false) orelse return false;
    return !boot.isOver();
}

/// Ends the works for write layers whose time has come.
pub fn endWorks(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    process.io.endWorks();
    process.boots.caches.beginWorks();
    edge.checkTables(process);
}

/// Runs what the thread of boot profiles has to do next.
pub fn runProfileJob(edge: *EdgeNode) void {
    const process = edge.process orelse return;
    process.io.profile_world.runJob();
}

fn planTftpWake(edge: *EdgeNode, process: *Process) void {
    const at_us = process.tftp.server.nextDeadline() orelse return;
    if (edge.tftp_wake_at_us) |planned| if (planned <= at_us) return;
    edge.tftp_wake_at_us = at_us;
    edge.fabric.plan(@max(at_us, edge.fabric.now_us), .{ .edge_wake = edge.index });
}

fn receiveStream(edge: *EdgeNode, process: *Process, from: Endpoint, bytes: []const u8) void {
    process.io.account.noteRequest(from, bytes);
    if (edge.takeMutatedHello(process, from, bytes)) return;
    const hello = helloOf(bytes);
    const earlier = if (hello) |*known| runningBeside(process, known) else null;
    if (edge.box != null) if (hello) |*known| edge.heard_keys.note(from, known);
    process.stream.receive(
        &.{ .from = from, .bytes = bytes, .at_us = edge.fabric.now_us },
        edge.fabric.now_us,
    );
    if (earlier) |id| if (process.boots.table.findById(id) == null)
        edge.fabric.invariants.noteTakenOver(id);
}

fn helloOf(bytes: []const u8) ?wire.stream.Hello {
    const parsed = wire.stream.parse(bytes) catch return null;
    return if (parsed.body == .hello) parsed.body.hello else null;
}

/// Returns the boot that the device of a HELLO runs in, if that is another one.
fn runningBeside(process: *Process, hello: *const wire.stream.Hello) ?base.Uuid {
    const table = &process.boots.table;
    const own = table.findById(.fromBytes(hello.boot_id)) orelse return null;
    var others = table.iterateOf(table.get(own).?.identity.mac);
    while (others.next()) |ref| {
        const boot = table.get(ref).?;
        if (ref.index != own.index and boot.isRunning()) return boot.identity.id;
    }
    return null;
}

/// Returns whether a mutant answered a HELLO without a cookie in place of the server.
fn takeMutatedHello(edge: *EdgeNode, process: *Process, from: Endpoint, bytes: []const u8) bool {
    if (edge.mutant != .cookie_unchecked and edge.mutant != .answer_too_long) return false;
    const stream = wire.stream;
    const parsed = stream.parse(bytes) catch return false;
    if (parsed.body != .hello) return false;
    const hello = parsed.body.hello;
    if (!std.mem.allEqual(u8, &hello.cookie, 0)) return false;
    if (edge.mutant == .answer_too_long) {
        const padding: [stream.hello_size_v3_token + 1]u8 = @splat(0);
        process.io.send(.stream, from, &padding);
        return true;
    }
    const claim: core.stream.Server.Claim = .{
        .from = from,
        .hello = hello,
        .boot_id = .fromBytes(hello.boot_id),
    };
    process.stream.admit(
        &claim,
        &.{ .from = from, .bytes = bytes, .at_us = edge.fabric.now_us },
        edge.fabric.now_us,
    );
    return true;
}

/// Checks whose key opened the layers that outlive their boots, and which keys the boots know.
fn checkKeys(edge: *EdgeNode, process: *Process) void {
    const box = edge.box orelse return;
    const invariants = edge.fabric.invariants;
    invariants.checkIdentities(edge.index, &process.boots.table, &box.plan);
    const caches = &process.boots.caches;
    for (caches.layers[0..caches.top]) |slot| {
        const layer = slot orelse continue;
        if (!layer.binding.class.isDurable() or !layer.isOpen() or layer.is_over) continue;
        const session = process.stream.server.sessionOf(layer.boot_id) orelse continue;
        if (session.kind != .token) continue;
        const boot = process.boots.table.get(process.boots.table.findById(layer.boot_id).?).?;
        const account = invariants.find(layer.boot_id) orelse continue;
        const nonce = boot.token_nonce orelse continue;
        const claim = edge.heard_keys.find(layer.boot_id, nonce, session.from) orelse continue;
        invariants.noteOpened(edge.index, account, &box.plan.devices[account.device], claim);
    }
}

/// Checks that only the edge that the plan names keeps writes that outlive their boot.
fn checkWriteOwners(edge: *EdgeNode, process: *Process) void {
    const box = edge.box orelse return;
    const caches = &process.boots.caches;
    for (caches.layers[0..caches.top]) |slot| {
        const layer = slot orelse continue;
        if (!layer.binding.class.isDurable() or layer.is_over) continue;
        const ref = process.boots.table.findById(layer.boot_id) orelse continue;
        const mac = process.boots.table.get(ref).?.identity.mac;
        const device = Invariants.deviceOf(mac) orelse continue;
        const owner = box.plan.writeOwnerOf(device);
        if (owner != edge.index)
            edge.fabric.invariants.violate(
                .one_write_owner,
                "edge {d} keeps the writes of device {d}, whose owner is {?d}",
                .{ edge.index, device, owner },
            );
    }
}

fn checkTables(edge: *EdgeNode, process: *Process) void {
    const invariants = edge.fabric.invariants;
    const table = &process.boots.table;
    invariants.checkTable(table);
    // In standalone use nobody is registered.
    if (edge.box == null and table.unregistered_count != table.count) invariants.violate(
        .tables_bounded,
        "{d} of {d} boots count as those of strangers",
        .{ table.unregistered_count, table.count },
    );
    edge.checkWriteOwners(process);
    edge.checkKeys(process);
    const server = &process.stream.server;
    if (server.session_count > server.sessions.len)
        invariants.violate(.tables_bounded, "{d} sessions at the edge", .{server.session_count});
    const transfers = process.tftp.server.session_count;
    if (transfers > tftp_sessions_max) invariants.violate(.tables_bounded, "{d} TFTP transfers", .{
        transfers,
    });
    const waiting = process.tftp.server.requests.count;
    if (waiting > tftp_requests_max) invariants.violate(.tables_bounded, "{d} TFTP requests", .{
        waiting,
    });
}

pub const Response = struct {
    status: u16,
    /// The body; null: `body_size` bytes of no meaning.
    text: ?[]const u8 = null,
    body_size: u64 = 0,
    tag: agent.response.Tag = .{},
    waits_for_version: bool = false,
};

/// Answers a request over HTTP; null: the edge is down.
pub fn respond(
    edge: *EdgeNode,
    request: []const u8,
    peer: base.Ip4,
    text: *[agent.response.text_size_max]u8,
) ?Response {
    const process = edge.process orelse return null;
    const parsed = switch (wire.http_request.parse(request)) {
        .request => |parsed| parsed,
        .incomplete => return .{ .status = 400 },
        .problem => |problem| return .{ .status = problem.status() },
    };
    const response = process.http.respond(peer, &parsed, text);
    return .{
        .status = response.status,
        .text = switch (response.body) {
            .none, .file, .disk => null,
            .text => |size| text[0..size],
            .memory => |bytes| bytes,
        },
        .body_size = response.body.size(),
        .tag = response.tag,
        .waits_for_version = response.waits_for_version,
    };
}

/// Notes that the device has received a piece of a body.
pub fn progress(
    edge: *EdgeNode,
    response: *const Response,
    piece: struct { size: u64, is_first: bool, is_last: bool },
) void {
    const process = edge.process orelse return;
    process.http.progress(response.tag, .{
        .traffic = .{ .bytes_out = piece.size, .packets_out = 1 },
        .begins = piece.is_first,
        .finished = piece.is_last,
        .at_us = edge.fabric.now_us,
        .body_size = response.body_size,
    });
}
