//! One running edge: its files, its boots, its packet loop, and the uplink if it is enrolled.
//! `start.zig` prepares it, `serve.zig` runs it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const host = @import("host");
const store_module = @import("store");
const options_module = @import("options.zig");
const boot_printer = @import("boot_printer.zig");
const TableSizes = @import("table_sizes.zig");
const Terminal = @import("terminal.zig").Terminal;
const assert = std.debug.assert;
const linux = std.os.linux;

/// How long before the instant of a schedule the boot profiles are loaded.
const look_ahead_ms = 120 * std.time.ms_per_s;

pub const Edge = @This();

init: std.process.Init,
terminal: *Terminal,
options: options_module.Serve,
sizes: TableSizes = undefined,
/// Fast and thread-safe; the packet loop allocates nothing after the start.
gpa: std.mem.Allocator = std.heap.smp_allocator,
started_us: u64 = 0,
data: ?host.DataDir = null,
epoch: u64 = 0,
log: ?host.ReportLog = null,
report_writer: ?host.ReportWriter = null,
/// Writes the journal of boots and the leases; null without a data directory.
file_worker: ?*host.Worker = null,
/// Null: nothing is packed for the stream.
packer: ?*host.PiecePacker = null,
cold_start: host.ColdStart = .{},
/// Null without a control plane.
report_worker: ?*host.Worker = null,
journal: ?host.BootJournal = null,
files: host.BootFiles = .none,
io: host.EdgeIo = undefined,
peers: core.site.PeerTable = undefined,
boots: host.Boots = undefined,
/// Null if the store's directory holds only plain files.
store: ?store_module.Store = null,
store_files: store_module.LinuxFiles = undefined,
loop: host.EdgeLoop = undefined,
link: ?*host.UplinkLink = null,
worker: ?*host.UplinkWorker = null,
/// Null without a control plane.
store_worker: ?*host.StoreWorker = null,
/// For transfers between the edges of the site.
site_peers: ?*host.SitePeers = null,
peer_server: ?*host.PeerServer = null,
layer_copies: ?*host.LayerCopies = null,
repairer: ?*host.Repairer = null,
captures: ?host.BootCaptures = null,
/// The same files through another directory descriptor: two threads cannot iterate over one.
waiting_captures: ?host.FilesOfBoots = null,
/// Null where nothing that boots read is kept.
reads: ?*host.BootReads = null,
waiting_reads: ?host.FilesOfBoots = null,
state: ?*host.StateBox = null,
/// How often manifests in the store were replaced.
replaced: u64 = 0,
power_ons: core.uplink.sender.PowerOnLog = .{},
power_on_file: ?host.PowerOnFile = null,
power_order_file: ?host.PowerOrderFile = null,
schedules: host.Agent.Schedules = undefined,
/// Null without a control plane.
schedule_file: ?host.ScheduleFile = null,
power_hook: ?*host.PowerHook = null,
lease_file: ?host.lease_file.LeaseFile = null,
disk_watch: host.DiskWatch = undefined,
/// The directory of write caches, where it is not that of a store.
caches_fd: ?i32 = null,
/// The service manager that started this program and watches it, if there is one.
manager: ?host.ServiceManager = null,
boot_counters: host.metrics_page.BootCounters = .{},
exchange: core.update.Exchange = .{},
/// The last reason that was logged for an exchange that has to wait.
exchange_awaits: core.update.Exchange.Decision = .none,
/// Found out by a thread: it starts the program, and copies this one.
successor: std.atomic.Value(core.update.Exchange.Successor) = .init(.unknown),
/// The successor takes write caches over; valid once it is known.
takes_caches: std.atomic.Value(bool) = .init(false),
/// Write caches may be open, or may have been taken from the program before.
has_caches: bool = false,
/// The thread that finds it out runs.
is_finding: std.atomic.Value(bool) = .init(false),
program: host.exchange.Program = .none,
/// Null without a data directory.
former: ?host.FormerProgram = null,
/// Null if this program has passed.
probation: ?core.update.Probation = null,
/// The end of the loop is an exchange for the former program.
is_left: bool = false,
/// Why, if this program is a release.
left_cause: core.update.Record.Cause = .no_control_plane,
/// The exchange that is wanted is for the release that was fetched.
exchange_order: ?host.UpdateWorker.Order = null,
/// What the data directory says of the last release.
record: ?core.update.Record = null,
/// Null without a control plane.
updates: ?*host.UpdateWorker = null,
/// Null without `--metrics`.
metrics: ?*host.MetricsServer = null,

/// Runs a prepared edge until TERM, INT or an exchange; returns the exit code.
pub fn run(edge: *Edge) u8 {
    host.log.start(edge.gpa, edge.init.io) catch
        return edge.terminal.fail("The thread of the log cannot be started on this system.", .{});
    if (edge.worker) |worker| worker.start() catch
        return edge.terminal.fail("The uplink's threads cannot be started on this system.", .{});
    edge.loop.stream.start() catch
        return edge.terminal.fail(
            "The threads that read disks cannot be started on this system.",
            .{},
        );
    if (edge.io.version_opener) |opener| opener.run() catch
        return edge.terminal.fail(
            "The threads that open versions cannot be started on this system.",
            .{},
        );
    if (edge.updates) |worker| worker.start() catch
        return edge.terminal.fail("The thread of updates cannot be started on this system.", .{});
    if (edge.store_worker) |worker| worker.start() catch
        return edge.terminal.fail(
            "The thread for store jobs cannot be started on this system.",
            .{},
        );
    if (edge.peer_server) |server| server.start() catch
        return edge.terminal.fail(
            "The thread for other edges cannot be started on this system.",
            .{},
        );
    if (edge.layer_copies) |copies| copies.start() catch
        return edge.terminal.fail(
            "The threads that copy write caches cannot be started on this system.",
            .{},
        );
    if (edge.repairer) |repairer| repairer.start() catch
        return edge.terminal.fail(
            "The thread that repairs the store cannot be started on this system.",
            .{},
        );
    if (edge.io.snapshots) |thread| thread.start() catch
        return edge.terminal.fail(
            "The thread of snapshots cannot be started on this system.",
            .{},
        );
    if (edge.power_hook) |hook| hook.start() catch
        return edge.terminal.fail(
            "The threads of --power-hook cannot be started on this system.",
            .{},
        );
    if (edge.metrics) |metrics| metrics.start() catch
        return edge.terminal.fail("The thread of --metrics cannot be started on this system.", .{});
    edge.announce();
    edge.notifyManager("READY=1");
    const owner: host.EdgeLoop.Owner =
        .{ .context = edge, .tick = tick, .woken = woken, .asked_to_exchange = askedToExchange };
    edge.loop.run(owner) catch {
        edge.finish();
        return edge.terminal.fail("The system refused to wait for packets; the edge stops.", .{});
    };
    edge.finish();
    return 0;
}

pub fn listener(edge: *Edge) host.EdgeIo.Listener {
    return .{
        .context = edge,
        .begins = begins,
        .reported = reported,
        .version_problem = versionProblem,
    };
}

/// Applies a verified state. Boots in progress keep what they have.
pub fn applyState(edge: *Edge, box: *host.StateBox) void {
    edge.boots.policy = box.policy;
    edge.boots.onState();
    if (edge.io.version_opener) |opener| opener.onState();
    if (box.state.devices.len > edge.sizes.devices_max) host.log.info(
        "{d} devices are registered, and the tables of this edge have slots for {d}: the others " ++
            "boot while slots are free. --devices-max sets the number.",
        .{ box.state.devices.len, edge.sizes.devices_max },
    );
    if (edge.captures) |*captures| captures.wanted = box.state.capture;
    if (edge.layer_copies) |copies| copies.maker.setHours(box.state.cacheCopyHours);
    edge.schedules.setState(host.sys.monotonicUs(), &box.state);
    if (edge.store_worker) |worker|
        worker.setOrders(box.state.storeJobs, box.state.keptDifferences);
    edge.orderRelease(&box.state);
    if (edge.state) |earlier| earlier.destroy(edge.gpa);
    edge.state = box;
    edge.io.versions.closeUnused(&edge.boots.table, &box.state);
    edge.wantProfiles(host.sys.monotonicUs());
    const site: ?core.site.Edges =
        if (box.state.siteEdges) |*site| .init(site, box.state.edgeId) else null;
    if (edge.site_peers) |peers| peers.set(site);
    if (edge.loop.peers) |*peers| peers.setSite(host.sys.monotonicUs(), site);
}

/// Versions that were packed again are read at their new places, unless boots read them: threads
/// open them once more.
fn openAgain(edge: *Edge) void {
    const findings = edge.io.store_findings orelse return;
    const box = edge.state orelse return;
    const opener = edge.io.version_opener orelse return;
    const replaced = findings.replaced.load(.acquire);
    if (replaced == edge.replaced) return;
    edge.replaced = replaced;
    var after: usize = 0;
    while (edge.io.versions.nextUnused(&edge.boots.table, &after)) |id|
        if (core.boot.assignment.describedVersion(&box.state, id)) |described|
            opener.start(described, null);
}

/// Loads the boot profiles before a schedule wakes machines, so that the edge's memory is warm.
fn lookAhead(edge: *Edge, now_us: u64) void {
    const box = edge.state orelse return;
    const unix_ms = host.sys.unixMs();
    for (box.state.schedules) |*schedule|
        if (schedule.isNear(unix_ms, look_ahead_ms)) return edge.wantProfiles(now_us);
}

/// Loads the boot profile of every version that may be booted.
pub fn wantProfiles(edge: *Edge, now_us: u64) void {
    const profiles = &edge.boots.profiles;
    if (edge.options.version) |id| profiles.want(id, now_us);
    const box = edge.state orelse return;
    for (box.state.vdisks) |*vdisk| {
        for (vdisk.versions) |*version| profiles.want(version.id, now_us);
    }
}

/// Runs once the boots are known: an order belongs to the boot that its device is in.
pub fn applyOrders(edge: *Edge) void {
    const box = edge.state orelse return;
    edge.boots.orders.update(box.state.powerOrders, &edge.boots.table, edge, keepOrder);
}

fn keepOrder(edge: *Edge, bound: core.site.PowerOrders.BoundOrder) void {
    if (edge.power_order_file) |*file| file.append(&edge.boots.orders, bound);
}

fn announce(edge: *const Edge) void {
    const options = &edge.options;
    const ports = &options.ports;
    // At most sixteen addresses, each with a comma and a space.
    var buffer: [core.dhcp.network.links_max * (base.Ip4.text_size_max + 2)]u8 = undefined;
    var listens: std.Io.Writer = .fixed(&buffer);
    for (options.listens.items, 0..) |ip, index|
        listens.print("{s}{f}", .{ if (index > 0) ", " else "", ip }) catch unreachable;
    host.log.info(
        "serving on {s}: dhcp {t}, tftp {d}, http {d}, stream {d}; {d} boot programs",
        .{
            listens.buffered(),
            options.dhcp,
            ports.tftp,
            ports.http,
            ports.stream,
            edge.files.fileCount(),
        },
    );
}

/// Runs once a second.
pub fn tick(context: *anyopaque, loop: *host.EdgeLoop, now_us: u64) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    if (edge.link) |link| link.setNumbers(loop.ignored(), edge.boots.table.active_count);
    if (edge.site_peers) |peers|
        peers.booting.store(edge.boots.table.active_count, .monotonic);
    if (edge.link) |link| link.setPeers(now_us, edge.boots.peers);
    if (edge.link) |link| link.setStoreErrors(&loop.stream.policy.store_errors);
    edge.publish(loop);
    if (edge.reads) |reads| reads.tick(&edge.boots);
    edge.saveLeases(now_us);
    edge.openAgain();
    edge.lookAhead(now_us);
    edge.turnProbation(loop, now_us);
    edge.turnUpdate(loop, now_us);
    edge.turnExchange(loop, now_us);
    // Sent only from here: a loop that hangs falls silent, and the manager restarts the edge.
    edge.notifyManager("WATCHDOG=1");
}

/// For the heartbeat and for the metrics.
fn publish(edge: *const Edge, loop: *const host.EdgeLoop) void {
    if (edge.link == null and edge.metrics == null) return;
    const counted = edge.figures(loop);
    if (edge.link) |link| link.setLoad(host.load_facts.of(&counted));
    if (edge.metrics) |metrics| metrics.page.set(&counted);
}

fn figures(edge: *const Edge, loop: *const host.EdgeLoop) host.metrics_page.LoopFigures {
    var figures_: host.metrics_page.LoopFigures = .{
        .boots = edge.boot_counters,
        .ignored = loop.ignored(),
        .devices_booting = edge.boots.table.active_count,
        .streams_open = loop.stream.policy.server.session_count,
        .write_caches = edge.boots.caches.levels(),
        .profiles = edge.boots.profiles.figures,
        .tftp_bytes = loop.tftp.policy.sent_bytes,
        .http_bytes = loop.http.sent_bytes,
        .stream_bytes = loop.stream.sent_bytes,
        .stream_reads = loop.stream.reads_count,
        .stream_cold_reads = loop.stream.reads.figures.cold,
        .stream_cold_us = loop.stream.reads.figures.cold_us,
        .store_errors = loop.stream.policy.store_errors.total,
        .stream_unanswered = loop.stream.reads.unanswered(),
    };
    if (edge.site_peers) |peers| figures_.differences = peers.movedBytes();
    if (edge.layer_copies) |copies| figures_.cache_copies = copies.figures();
    addShards(&figures_, loop);
    return figures_;
}

fn addShards(sum: *host.metrics_page.LoopFigures, loop: *const host.EdgeLoop) void {
    var first: host.metrics_page.Shard =
        .{ .reads = sum.stream_reads, .sessions = sum.streams_open };
    sum.shards.appendAssumeCapacity(first);
    const shards = loop.stream.shards orelse return;
    for (shards.shards) |shard| {
        const counted = shard.published.read();
        first.sessions -|= counted.sessions;
        sum.stream_bytes += counted.sent_bytes;
        sum.stream_reads += counted.reads;
        sum.stream_cold_reads += counted.cold;
        sum.stream_cold_us += counted.cold_us;
        for (&sum.stream_unanswered, counted.unanswered) |*total, count| total.* += count;
        sum.shards.appendAssumeCapacity(.{
            .reads = counted.reads,
            .sessions = counted.sessions,
            .forwarded = counted.forwarded,
            .packets_lost = counted.forwarded_lost,
            .events_lost = counted.events_lost,
        });
    }
    sum.shards.slice()[0] = first;
}

fn notifyManager(edge: *const Edge, text: []const u8) void {
    if (edge.manager) |*manager| manager.notify(text);
}

fn woken(context: *anyopaque, loop: *host.EdgeLoop, now_us: u64) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    // A power command may have ended, a release may be fetched, or the next program known.
    edge.schedules.next_turn_us = 0;
    loop.next_tick_us = now_us;
    const link = edge.link orelse return;
    const box = link.takeState() orelse return;
    edge.applyState(box);
    edge.link.?.onInForce(box.state.pair());
    edge.applyOrders();
    for (box.state.powerOns) |power_on| {
        if (!edge.power_ons.add(power_on.id)) continue;
        if (edge.power_on_file) |*file| file.append(&edge.power_ons, power_on.id);
        loop.boots.io.wake(power_on.mac);
        loop.boots.powerOn(now_us, power_on.mac);
    }
}

/// A person or a script asks this edge to go on as the program that now lies at its path.
fn askedToExchange(context: *anyopaque, loop: *host.EdgeLoop, now_us: u64) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    if (edge.data == null) return host.log.info(
        "Without --data this edge forgets its boots with its process: USR2 is ignored.",
        .{},
    );
    edge.exchangeFor(null, loop, now_us);
}

/// `order`: the release that was fetched; null: the program that lies at the installed one's path.
fn exchangeFor(
    edge: *Edge,
    order: ?host.UpdateWorker.Order,
    loop: *host.EdgeLoop,
    now_us: u64,
) void {
    if (edge.exchange.asked_us != null or edge.is_finding.load(.acquire)) return;
    edge.exchange.ask(now_us);
    edge.exchange_order = order;
    loop.next_tick_us = now_us;
    // While the next program is looked at.
    if (edge.journal) |*journal| journal.compactNow(&edge.boots.table);
    edge.successor.store(.unknown, .release);
    edge.is_finding.store(true, .release);
    const find: std.Thread.SpawnError!std.Thread = if (order) |release|
        std.Thread.spawn(.{}, findRelease, .{ edge, release })
    else
        std.Thread.spawn(.{}, findSuccessor, .{ edge, edge.probation == null });
    const thread = find catch return edge.onSuccessor(.former_not_kept);
    thread.detach();
}

fn findRelease(edge: *Edge, order: host.UpdateWorker.Order) void {
    const former = edge.former.?;
    var buffer: [std.fs.max_path_bytes]u8 = undefined;
    const size = former.dir.realPathFile(former.io, host.ReleaseSlots.next_name, &buffer) catch
        return edge.onSuccessor(.former_not_kept);
    const version = order.version.constSlice();
    const found: core.update.Exchange.Successor =
        if (!host.FormerProgram.starts(edge.gpa, edge.init.io, buffer[0..size], version))
            .unfit
        else if (!former.keep(host.exchange.running_program))
            .former_not_kept
        else
            .ready;
    edge.onFound(buffer[0..size], found);
}

fn onFound(edge: *Edge, path: []const u8, found: core.update.Exchange.Successor) void {
    edge.takes_caches.store(found == .ready and edge.takesCaches(path), .release);
    edge.onSuccessor(found);
}

fn onSuccessor(edge: *Edge, found: core.update.Exchange.Successor) void {
    edge.successor.store(found, .release);
    edge.is_finding.store(false, .release);
    host.sys.wake(edge.loop.wake_fd);
}

/// Waits for a process and for the disk, so it has its own thread. A program on probation is not
/// kept: the one before it still is.
fn findSuccessor(edge: *Edge, is_kept: bool) void {
    const path = edge.program.installed;
    const found: core.update.Exchange.Successor = if (edge.former.?.isRejected(path))
        .rejected
    else if (!host.FormerProgram.starts(edge.gpa, edge.init.io, path, null))
        .unfit
    else if (edge.isReplaced(path))
        .replaced
    else if (is_kept and !edge.former.?.keep(host.exchange.running_program))
        .former_not_kept
    else
        .ready;
    edge.onFound(path, found);
}

fn takesCaches(edge: *const Edge, path: []const u8) bool {
    const format = store_module.LayerHandover.format;
    return host.FormerProgram.takesCaches(edge.gpa, edge.init.io, path, format);
}

/// The installed program is still the one that a release replaces.
fn isReplaced(edge: *const Edge, path: []const u8) bool {
    if (edge.program.kind != .updated) return false;
    const last = if (edge.record) |*last| last else return false;
    return host.FormerProgram.starts(edge.gpa, edge.init.io, path, last.installed);
}

fn orderRelease(edge: *Edge, state: *const core.uplink.desired_state.DesiredState) void {
    const worker = edge.updates orelse return;
    const order = if (state.release) |release|
        host.UpdateWorker.Order.init(release.version, release.attempt)
    else
        null;
    if (!worker.setOrder(order)) return;
    // What was fetched for another order does not take over.
    if (edge.exchange_order != null) edge.exchange.asked_us = null;
}

/// A release that was fetched takes over, once this program has passed.
fn turnUpdate(edge: *Edge, loop: *host.EdgeLoop, now_us: u64) void {
    const worker = edge.updates orelse return;
    if (edge.probation != null or edge.exchange.asked_us != null) return;
    const order = worker.due(edge.isAccepted()) orelse return;
    edge.exchangeFor(order, loop, now_us);
}

/// The release cannot take over.
fn refuseRelease(edge: *Edge, order: host.UpdateWorker.Order) void {
    const worker = edge.updates.?;
    if (edge.successor.load(.acquire) != .unfit) return worker.onFailed(.no_space);
    const failed = edge.recordOf(&order, .failed, .unfit);
    edge.slots().keep(&failed);
    worker.onTried(.{ .order = order, .outcome = .failed, .cause = .unfit });
}

/// `order` outlives the record.
pub fn recordOf(
    edge: *const Edge,
    order: *const host.UpdateWorker.Order,
    outcome: core.update.Record.Outcome,
    cause: ?core.update.Record.Cause,
) core.update.Record {
    const is_updated = edge.program.kind == .updated;
    return .{
        .version = order.version.constSlice(),
        .attempt = order.attempt,
        .installed = if (is_updated and edge.record != null)
            edge.record.?.installed
        else
            base.version,
        .outcome = outcome,
        .cause = cause,
    };
}

pub fn slots(edge: *const Edge) host.ReleaseSlots {
    return .{ .io = edge.init.io, .dir = edge.former.?.dir };
}

fn passRelease(edge: *Edge) void {
    if (edge.program.kind != .updated) return;
    const last = if (edge.record) |*last| last else return;
    last.pass(base.version);
    edge.slots().keep(last);
    edge.tellTried();
    // A rollout waits for it.
    if (edge.link) |link| link.noteNews();
}

/// What the data directory says of the last release, for the policy.
pub fn tellTried(edge: *Edge) void {
    const worker = edge.updates orelse return;
    const last = if (edge.record) |*last| last else return;
    worker.onTried(.{
        .order = host.UpdateWorker.Order.init(last.version, last.attempt) orelse return,
        .outcome = last.outcome,
        .cause = last.cause,
    });
}

fn turnProbation(edge: *Edge, loop: *host.EdgeLoop, now_us: u64) void {
    const probation = if (edge.probation) |*probation| probation else return;
    switch (probation.judge(now_us, edge.isAccepted())) {
        .open => return,
        .passed => {
            // The former program is still needed: the next one may fail.
            if (edge.exchange.asked_us != null) return;
            edge.passRelease();
            edge.former.?.pass();
            host.log.info("bootfarm-edge {s} is healthy and has taken over.", .{base.version});
        },
        .failed => {
            host.log.info(
                "bootfarm-edge {s} does not reach the control plane, which the former program " ++
                    "did: the edge returns to that.",
                .{base.version},
            );
            if (edge.program.kind != .updated)
                edge.former.?.reject(host.exchange.running_program);
            edge.is_left = true;
            loop.is_exchanged = true;
        },
    }
    edge.probation = null;
}

/// Returns whether the control plane takes this edge's requests.
pub fn isAccepted(edge: *const Edge) bool {
    return if (edge.link) |link| link.is_accepted.load(.acquire) else false;
}

fn turnExchange(edge: *Edge, loop: *host.EdgeLoop, now_us: u64) void {
    if (edge.exchange.asked_us == null) return;
    var decision = edge.exchange.decide(now_us, .{
        .successor = edge.successor.load(.acquire),
        .downloads = loop.downloadCount(),
        .volatile_caches = edge.boots.caches.volatileCount(),
        .takes_caches = edge.takes_caches.load(.acquire),
    });
    if (decision == .due) {
        const is_complete = edge.handOverCaches(settle_limit_exchange_us);
        decision = edge.exchange.onHandover(now_us, is_complete);
        loop.is_exchanged = is_complete;
    }
    loop.awaits_downloads = decision == .awaits_downloads;
    if (decision == edge.exchange_awaits) return;
    edge.exchange_awaits = decision;
    switch (decision) {
        .none, .awaits_program => {},
        .refused => {
            edge.explainRefusal();
            if (edge.exchange_order) |order| edge.refuseRelease(order);
        },
        .due => host.log.info("The program is exchanged; devices resume their streams.", .{}),
        .awaits_downloads => host.log.info(
            "The program is exchanged when no download is in progress, in five minutes at most.",
            .{},
        ),
        .awaits_caches => host.log.info(
            "The next program does not take over write caches that end with this process: the " ++
                "program is exchanged when no device has one; bootfarm-edge doctor --only " ++
                "restart names these devices.",
            .{},
        ),
        .awaits_handover => host.log.info(
            "Write caches cannot be handed over now; this program continues, and tries again.",
            .{},
        ),
    }
}

/// Hands over the write caches that end with the process; false: this program is to continue.
fn handOverCaches(edge: *Edge, limit_us: u64) bool {
    const caches = &edge.boots.caches;
    if (caches.volatileCount() == 0) return true;
    if (!edge.loop.stream.restLayers(limit_us)) return false;
    caches.handOver() catch |err| {
        host.log.info("The store does not take what is known of write caches ({t}).", .{err});
        return false;
    };
    return true;
}

/// Leaves write caches open for the program at this path, if it takes them: otherwise they end
/// here. It may be another one than the one that was asked, or the one before this one; a program
/// that does not know the variable would never close them, and hand it to the one after it.
pub fn leaveCaches(edge: *Edge, path: []const u8) error{OutOfMemory}!void {
    const environment, const io = .{ edge.init.environ_map, edge.init.io };
    if (!edge.has_caches) {
        // This program has not come to take them.
        const handle = host.inherited_caches.find(environment) orelse return;
        if (edge.takesCaches(path)) return host.inherited_caches.leave(environment, handle);
        host.sys.close(@backingInt(handle));
        host.inherited_caches.closeRest(io);
        return host.log.info("Write caches end with this program.", .{});
    }
    const caches = &edge.boots.caches;
    if (caches.handed_over == null and caches.volatileCount() == 0) return;
    if (!edge.takesCaches(path) or
        (caches.handed_over == null and !edge.handOverCaches(settle_limit_us)))
        return host.log.info("Write caches end with this program.", .{});
    const handle = caches.handed_over orelse return;
    for (caches.layers[0..caches.top]) |place| if (place) |layer| {
        if (!layer.is_handed_over) continue;
        for ([_]store_module.Files.Handle{ layer.inner.data, layer.inner.sums.?.handle }) |file| {
            _ = host.inherited_caches.setKept(file, true);
        }
    };
    try host.inherited_caches.leave(environment, handle);
}

fn explainRefusal(edge: *const Edge) void {
    const path = if (edge.exchange_order != null) "The fetched release" else edge.program.installed;
    switch (edge.successor.load(.acquire)) {
        .unknown, .ready => unreachable,
        .rejected => host.log.info(
            "{s} has failed here before, and does not take over; install another release.",
            .{path},
        ),
        .replaced => host.log.info(
            "{s} is the program that this release replaces; install another one first.",
            .{path},
        ),
        .unfit => host.log.info(
            "{s} does not start on this machine, and does not take over; install it again.",
            .{path},
        ),
        .former_not_kept => host.log.info(
            "The running program cannot be kept in the data directory, so {s} does not take " ++
                "over; free some space.",
            .{path},
        ),
    }
}

fn begins(context: *anyopaque) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    edge.loop.watch.noteBegin();
}

fn reported(context: *anyopaque, boot: *const core.boot.Boot) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    if (edge.link) |link| link.noteReport();
    if (boot.isOver() and boot.live_changes.outcome) edge.boot_counters.count(boot);
    if (boot.isOver() and (boot.live_changes.outcome or boot.live_changes.steps)) edge.print(boot);
}

/// There is something to send.
pub fn written(context: *anyopaque) void {
    const edge: *Edge = @ptrCast(@alignCast(context));
    if (edge.link) |link| link.noteReport();
}

fn print(edge: *Edge, boot: *const core.boot.Boot) void {
    var buffer: [boot_printer.size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    const result = if (edge.options.json)
        boot_printer.writeJson(&writer, boot)
    else
        boot_printer.writeTable(&writer, boot, if (boot.live_changes.outcome) .whole else .steps);
    result catch return;
    edge.terminal.out(writer.buffered());
}

fn versionProblem(_: *anyopaque, problem: host.version_table.Problem) void {
    host.log.info("A version cannot be served from the store: {f}.", .{problem});
}

fn saveLeases(edge: *Edge, now_us: u64) void {
    const file = if (edge.lease_file) |*file| file else return;
    file.tick(&edge.loop.dhcp.?.policy.service, now_us);
}

/// The service manager gives it 15 s.
const settle_limit_us = 5 * std.time.us_per_s;
/// Devices wait for the next program.
const settle_limit_exchange_us = 100 * std.time.us_per_ms;

/// Stops in this order: nothing more is accepted, what was counted is synced, and the lock goes
/// with the process.
fn finish(edge: *Edge) void {
    if (!edge.loop.is_exchanged) edge.notifyManager("STOPPING=1");
    const now_us = host.sys.monotonicUs();
    edge.boots.tick(now_us);
    edge.saveLeases(now_us);
    edge.loop.stream.settleLayers(
        if (edge.loop.is_exchanged) settle_limit_exchange_us else settle_limit_us,
    );
    if (edge.report_worker) |worker| worker.finish();
    if (edge.log) |*log| log.sync();
    if (edge.journal) |*journal| journal.sync();
}
