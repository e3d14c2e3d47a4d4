//! Works on the store beside serving from it: the store jobs of the desired state, one of each
//! queue at a time; the list of what the store contains; the weekly verification of each version;
//! and packing them again. A separate thread, so that the packet loop never waits for any of it;
//! processes of this same program do the work (store_child.zig) and may be killed at any moment.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store_module = @import("store");
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const DataDir = @import("../files/data_dir.zig");
const DirStamp = @import("../files/dir_stamp.zig");
const ProfileThread = @import("../files/profile_thread.zig");
const LayerHold = @import("../stream/layer_hold.zig");
const DifferenceFiles = @import("../difference/difference_files.zig");
const DifferenceJobs = @import("../difference/difference_jobs.zig");
const Repairer = @import("../repair/repairer.zig");
const StoreFindings = @import("../files/store_findings.zig");
const SitePeers = @import("../difference/site_peers.zig");
const TransferThread = @import("../difference/transfer_thread.zig");
const KeyRotation = @import("key_rotation.zig");
const StoreChild = @import("store_child.zig");
const StoreOrders = @import("store_orders.zig");
const StoreUpkeep = @import("store_upkeep.zig");
const UplinkClient = @import("client.zig");
const ImageFetch = @import("image_fetch.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Io = std.Io;

const Arguments = core.uplink.store_job.Arguments;
const Queue = core.uplink.store_job.Queue;
const Order = core.uplink.store_job.Order;
const StoreInventory = core.uplink.store_inventory.StoreInventory;
const StoreJobs = core.uplink.store_jobs.StoreJobs;

/// Also after a fork: it names the running program.
const own_program = "/proc/self/exe";
const turn_ms = 1_000;
const request_timeout_ms = 20_000;
const body_size_max = 128 * 1024;
/// An older API without this route.
const unknown_route_ms = 600_000;
/// The list is made again: sizes may have changed, and versions may have come or gone by hand
/// unnoticed.
const list_interval_ms = core.uplink.store_inventory.report_interval_ms;
/// The shortest interval for reporting what changes with each boot.
const profiles_interval_ms = 60_000;
/// Except after a job: what it has cleared leaves the memory within a second.
const profiles_eager_ms = 5_000;
/// If there is no store yet, somebody may create one; if there is one, versions may come and go by
/// hand.
const look_interval_ms = 10_000;
/// Devices come first: an edge that has just started may be in a boot storm.
const check_delay_ms = 600_000;
/// A device that was told to shut down may take this long until it is silent.
const hold_limit_ms = 60_000;

/// For the metrics page.
pub const StoreWorker = @This();

gpa: std.mem.Allocator,
io: Io,
data: *const DataDir,
client_options: UplinkClient.Options,
rotation: *KeyRotation,
/// The directory of the edge's store.
path: []const u8,
program: []const u8 = own_program,
epoch: u64,
wake_fd: i32,
/// Where images of imports may be fetched from.
import_sources: *const core.uplink.ImportUrl.Sources,
hold: LayerHold,
/// The layer that the next job works on, and since when it is requested.
wanted_layer: ?struct { subject: LayerHold.Subject, since_ms: u64 } = null,
inventory: StoreInventory,
/// Null: this edge learns none.
profiles: ?*ProfileThread = null,
/// The changes of `profiles` at the last look.
profile_changes: u64 = 0,
next_profiles_ms: u64 = 0,
/// Until then each change is reported: somebody has changed something and is watching.
profiles_eager_until_ms: u64 = 0,
body: []u8,
found: []core.uplink.store_job.StoredVersion,
found_count: u32 = 0,
is_list_whole: bool = true,
mutex: Io.Mutex = .init,
next_orders: ?*StoreOrders = null,
orders: ?*StoreOrders = null,
jobs: StoreJobs = .{},
facts: ?core.uplink.store_job.StoreFacts = null,
works: std.enums.EnumArray(Queue, ?Work) = .initFill(null),
list: ?StoreChild = null,
/// Of the running import, whose process has not been started yet.
fetch: ?*ImageFetch = null,
/// The image that was fetched last: an import that waits for a lock does not check it again.
fetched_id: ?base.Uuid = null,
differences: DifferenceJobs = .{},
/// Null: this edge asks no other edges.
peers: ?*SitePeers = null,
/// Gets the damage that processes find. Null: nothing is repaired.
repairer: ?*Repairer = null,
/// For the packet loop and the metrics.
findings: StoreFindings,
back_off: core.uplink.sender.BackOff = .{},
is_stopped: bool = false,
/// That there is no store is logged once.
is_absence_reported: bool = false,
scan: u64 = 0,
next_list_ms: u64 = 0,
next_look_ms: u64 = 0,
versions_stamp: DirStamp = .{},
next_check_ms: u64 = 0,
upkeep: StoreUpkeep = .{},
told_ms: u64 = 0,
inventory_told_ms: u64 = 0,
started_ms: u64 = 0,

const Work = struct {
    child: StoreChild,
    purpose: union(enum) { job: base.Uuid, check: base.Uuid, upkeep: StoreUpkeep.Work },
    made: core.uplink.store_job.Made = .empty,
    did: core.uplink.store_job.Message = .empty,
    why: core.uplink.store_job.Message = .empty,
};

const jobs_name = "store-jobs";
/// In the data directory: when versions were verified, and the results.
pub const checks_name = "store-checks";
/// In the data directory: which versions were packed again.
const upkeep_name = "store-upkeep";

pub const Options = struct {
    io: Io,
    data: *const DataDir,
    client_options: UplinkClient.Options,
    rotation: *KeyRotation,
    store_fd: i32,
    epoch: u64,
    /// Outlives the worker.
    import_sources: *const core.uplink.ImportUrl.Sources = &.{},
};

/// Returns null if the store's directory has no path.
pub fn create(
    gpa: std.mem.Allocator,
    options: Options,
) (error{OutOfMemory} || sys.Error)!*StoreWorker {
    const worker = try gpa.create(StoreWorker);
    const wake_fd: i32 =
        @intCast(try sys.check(linux.eventfd(0, linux.EFD.CLOEXEC | linux.EFD.NONBLOCK)));
    var link: [32]u8 = undefined;
    const link_path =
        std.mem.printSentinel(&link, "/proc/self/fd/{d}", .{options.store_fd}, 0) catch unreachable;
    var path: [Arguments.store_path_size_max]u8 = undefined;
    const size = try sys.check(linux.readlinkat(linux.AT.FDCWD, link_path, &path, path.len));
    worker.* = .{
        .gpa = gpa,
        .io = options.io,
        .data = options.data,
        .client_options = options.client_options,
        .rotation = options.rotation,
        .path = try gpa.dupe(u8, path[0..size]),
        .epoch = options.epoch,
        .wake_fd = wake_fd,
        .import_sources = options.import_sources,
        .hold = .{ .io = options.io, .wake_fd = wake_fd },
        .inventory = try .init(gpa),
        .findings = .{ .io = options.io },
        .body = try gpa.alloc(u8, body_size_max),
        .found = try gpa.alloc(
            core.uplink.store_job.StoredVersion,
            core.uplink.store_inventory.versions_max,
        ),
    };
    worker.restore();
    return worker;
}

/// Runs until the process ends. Orders may come before, and at any time.
pub fn start(worker: *StoreWorker) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 2 << 20 }, run, .{worker});
    thread.detach();
}

/// May be called from any thread: what the desired state orders now, and the differences that are
/// kept for other edges.
pub fn setOrders(worker: *StoreWorker, orders: []const Order, kept: []const base.Uuid) void {
    const box = StoreOrders.create(worker.gpa, orders, kept) catch return;
    worker.mutex.lockUncancelable(worker.io);
    if (worker.next_orders) |earlier| earlier.destroy(worker.gpa);
    worker.next_orders = box;
    worker.mutex.unlock(worker.io);
    sys.wake(worker.wake_fd);
}

fn run(worker: *StoreWorker) void {
    var client: UplinkClient = .init(worker.gpa, worker.io, worker.client_options);
    defer client.deinit();
    worker.started_ms = nowMs();
    worker.next_check_ms = worker.started_ms + check_delay_ms;
    worker.upkeep.postpone(worker.started_ms);
    while (true) {
        worker.takeOrders();
        worker.lookForStore(nowMs());
        worker.releaseHomes(nowMs());
        if (worker.facts != null) worker.begin(nowMs());
        worker.keep();
        worker.takeProfiles(nowMs());
        if (!worker.is_stopped) worker.send(&client, nowMs());
        worker.wait();
        worker.hear();
    }
}

pub fn takeOrders(worker: *StoreWorker) void {
    worker.mutex.lockUncancelable(worker.io);
    const taken = worker.next_orders;
    worker.next_orders = null;
    worker.mutex.unlock(worker.io);
    const box = taken orelse return;
    if (worker.orders) |earlier| earlier.destroy(worker.gpa);
    worker.orders = box;
    worker.jobs.update(box.orders);
    // Without a store, the new ones say at once what they wait for.
    if (worker.facts == null) worker.next_look_ms = 0;
    worker.stopUnwanted();
    worker.differences.setRate(box.orders);
    worker.forgetFetched(box.orders);
    DifferenceFiles.sweep(worker.io, worker.path, box.orders, box.kept);
}

/// The files of images that no job takes any more are removed.
fn forgetFetched(worker: *StoreWorker, orders: []const Order) void {
    ImageFetch.sweep(worker.io, worker.path, orders);
    const id = worker.fetched_id orelse return;
    if (!ImageFetch.isOrdered(id, orders)) worker.fetched_id = null;
}

/// Between two inventories: the pages of one inventory are consistent.
fn takeProfiles(worker: *StoreWorker, now_ms: u64) void {
    const profiles = worker.profiles orelse return;
    if (now_ms < worker.next_profiles_ms or worker.inventory.page_from != null) return;
    worker.profile_changes =
        profiles.inventoryAfter(worker.profile_changes, &worker.inventory.profiles) orelse return;
    worker.inventory.profilesChanged();
    if (worker.inventory.page_from != null and now_ms >= worker.profiles_eager_until_ms)
        worker.next_profiles_ms = now_ms + profiles_interval_ms;
}

pub fn stopWork(worker: *StoreWorker, queue: Queue) void {
    const place = worker.works.getPtr(queue);
    const work = if (place.*) |*work| work else return;
    work.child.stop();
    place.* = null;
    if (queue == .changes) worker.endHold();
    // The process may have finished its work before.
    worker.next_list_ms = 0;
}

/// Stops the work of jobs that were taken back.
fn stopUnwanted(worker: *StoreWorker) void {
    for (std.enums.values(Queue)) |queue|
        if (worker.works.getPtr(queue).*) |*work| switch (work.purpose) {
            .job => |id| if (!worker.jobs.isRunning(id)) worker.stopWork(queue),
            .check, .upkeep => {},
        };
    if (worker.differences.jobId()) |id|
        if (!worker.jobs.isRunning(id)) worker.differences.stop();
    const fetch = worker.fetch orelse return;
    if (worker.jobs.isRunning(fetch.options.job_id)) return;
    fetch.release();
    worker.fetch = null;
}

/// A job does not wait for idle work.
fn stopCheck(worker: *StoreWorker, now_ms: u64) void {
    for (std.enums.values(Queue)) |queue|
        if (worker.works.getPtr(queue).*) |*work| if (work.purpose != .job) {
            worker.stopWork(queue);
            worker.next_check_ms = now_ms + check_delay_ms;
            worker.upkeep.postpone(now_ms);
            worker.findings.setPacking(0, 0);
        };
}

/// Reads some hundred bytes, once.
pub fn lookForStore(worker: *StoreWorker, now_ms: u64) void {
    if (worker.facts != null or now_ms < worker.next_look_ms) return;
    worker.next_look_ms = now_ms + look_interval_ms;
    worker.facts = readFacts(worker.gpa, worker.path) catch |err| {
        worker.blockJobs(err);
        const has_orders = if (worker.orders) |box| box.orders.len > 0 else false;
        if (!has_orders or worker.is_absence_reported) return;
        worker.is_absence_reported = true;
        log.info(
            "The control plane has jobs for the store in {s}, but no store can be opened there ({t}): the jobs wait.",
            .{ worker.path, err },
        );
        return;
    };
}

/// The control plane shows the reason at each job that waits.
fn blockJobs(worker: *StoreWorker, problem: FactsError) void {
    var buffer: [core.uplink.store_job.message_size_max]u8 = undefined;
    const path = worker.path;
    const text: []const u8 = switch (problem) {
        error.NotAStore, error.NotFound => std.mem.print(
            &buffer,
            "The edge has no store yet. Create it on the edge's machine, as its user: bootfarm-edge vdisk init --beside-files --store {s}",
            .{path},
        ),
        error.TooNew => std.mem.print(
            &buffer,
            "The edge's store has a later format than its release supports: update the edge.",
            .{},
        ),
        else => |other| std.mem.print(
            &buffer,
            "The edge cannot open its store ({t}). On its machine, bootfarm-edge vdisk list --store {s} says what to do.",
            .{ other, path },
        ),
        // The path is too long to be shown.
    } catch "The edge has no store that it can open: run bootfarm-edge doctor on its machine.";
    worker.jobs.block(core.uplink.store_job.messageOf(text));
}

pub fn begin(worker: *StoreWorker, now_ms: u64) void {
    worker.takeFetched();
    worker.takeDifference();
    if (worker.hold.takeWritten()) |written| {
        worker.inventory.written = written;
        // Its layer may be new.
        worker.next_list_ms = 0;
    }
    worker.takeMended(now_ms);
    if (now_ms >= worker.next_look_ms) {
        worker.next_look_ms = now_ms + look_interval_ms;
        var path: [Arguments.store_path_size_max + 16]u8 = undefined;
        const versions = std.mem.printSentinel(&path, "{s}/versions", .{worker.path}, 0) catch
            unreachable;
        // Versions that are packed again get manifests all the time.
        if (worker.versions_stamp.hasChanged(versions) and !worker.isInUpkeep())
            worker.next_list_ms = 0;
    }
    if (worker.list == null and now_ms >= worker.next_list_ms) {
        worker.next_list_ms = now_ms + list_interval_ms;
        worker.found_count = 0;
        worker.is_list_whole = true;
        var arguments: Arguments = .{};
        core.uplink.store_job.writeList(&arguments, worker.program, worker.path);
        worker.list = StoreChild.start(&arguments) catch null;
    }
    // Short work is started first: an import that starts at the same time waits for it.
    var is_busy = false;
    for ([_]Queue{ .changes, .images, .differences }) |queue|
        if (worker.beginJob(queue, now_ms)) {
            is_busy = true;
        };
    if (!is_busy and !worker.beginUpkeep(now_ms)) worker.beginCheck(now_ms);
}

/// Starts to fetch the image of an import. Returns false if it has been fetched.
fn beginFetch(worker: *StoreWorker, order: *const Order) bool {
    const wanted = core.uplink.import_source.fetchedOf(order) orelse return false;
    if (worker.fetched_id) |id| if (id.eql(wanted.file_id)) return false;
    worker.fetch = ImageFetch.start(worker.gpa, .{
        .io = worker.io,
        .client_options = worker.client_options,
        .rotation = worker.rotation,
        .wake_fd = worker.wake_fd,
        .store_path = worker.path,
        .job_id = order.id,
        .file_id = wanted.file_id,
        .source = wanted.source,
        .sources = worker.import_sources,
        .size = wanted.size,
        .sha256 = wanted.sha256,
    }) catch {
        worker.jobs.end(order.id, .{
            .failed = core.uplink.store_job.messageOf("no thread could be started to fetch it"),
        });
        return true;
    };
    worker.jobs.begin(order.id);
    return true;
}

/// Starts the import of what was fetched.
fn takeFetched(worker: *StoreWorker) void {
    const fetch = worker.fetch orelse return;
    const id = fetch.options.job_id;
    worker.jobs.progress(id, fetch.done_bytes.load(.monotonic), fetch.sizeBytes());
    const outcome = fetch.outcome();
    if (outcome == .running) return worker.jobs.note(id, fetch.note());
    worker.fetched_id = if (outcome == .fetched) fetch.options.file_id else null;
    fetch.release();
    worker.fetch = null;
    switch (outcome) {
        .running => unreachable,
        .failed => |why| worker.jobs.end(id, .{ .failed = why }),
        .fetched => worker.startProcess(orderOf(worker.orders.?.orders, id), .images),
    }
}

fn transferContext(worker: *StoreWorker) TransferThread.Context {
    return .{
        .gpa = worker.gpa,
        .io = worker.io,
        .client_options = worker.client_options,
        .rotation = worker.rotation,
        .wake_fd = worker.wake_fd,
        .store_path = worker.path,
        .peers = worker.peers,
    };
}

/// Starts what moves the bytes of a difference. Returns false if the store's process is next.
fn beginDifference(worker: *StoreWorker, order: *const Order) bool {
    return worker.onTransfer(order.id, worker.differences.begin(worker.transferContext(), order));
}

fn onTransfer(worker: *StoreWorker, id: base.Uuid, next: DifferenceJobs.Next) bool {
    switch (next) {
        .process => return false,
        .transfer => if (!worker.jobs.isRunning(id)) worker.jobs.begin(id),
        .impossible => worker.jobs.end(id, .{
            .failed = core.uplink.store_job.messageOf("no thread could be started for it"),
        }),
    }
    return true;
}

/// Continues the job whose bytes have been moved.
fn takeDifference(worker: *StoreWorker) void {
    switch (worker.differences.take()) {
        .none => {},
        .running => |now| {
            const id = worker.differences.jobId().?;
            worker.jobs.progress(id, now.done_bytes, now.total_bytes);
            worker.jobs.note(id, core.uplink.store_job.messageOf(now.note));
        },
        .end => |end| switch (end.outcome) {
            .failed => |why| worker.jobs.end(end.job_id, .{ .failed = why }),
            .sent => |made| worker.jobs.end(end.job_id, .{ .done = .{
                .packed_difference = made,
                .did = core.uplink.store_job.differenceDid(made.size),
            } }),
            .fetched => worker.startProcess(
                orderOf(worker.orders.?.orders, end.job_id),
                .differences,
            ),
        },
    }
}

/// Returns false if nothing runs in this queue and nothing is to be started now.
fn beginJob(worker: *StoreWorker, queue: Queue, now_ms: u64) bool {
    const orders = if (worker.orders) |box| box.orders else &.{};
    while (worker.jobs.next(queue, orders, now_ms)) |id| {
        const order = orderOf(orders, id);
        if (core.uplink.store_job.releasedOf(order) != null) return true;
        worker.stopCheck(now_ms);
        if (queue == .changes) switch (worker.holdFor(order, now_ms)) {
            .held => {},
            .waiting => return true,
            .written => {
                worker.endHold();
                worker.jobs.end(id, .{ .failed = core.uplink.store_job.messageOf(
                    "its device still runs from it: shut the device down first",
                ) });
                continue;
            },
        };
        if (worker.beginFetch(order)) continue;
        if (queue == .differences and worker.beginDifference(order)) continue;
        worker.startProcess(order, queue);
    }
    if (worker.works.getPtr(queue).* != null) return true;
    if (queue == .images and worker.fetch != null) return true;
    if (queue == .differences and worker.differences.running != null) return true;
    if (queue == .changes) worker.endHold();
    return false;
}

/// The job ends at once if it cannot be started.
fn startProcess(worker: *StoreWorker, order: *const Order, queue: Queue) void {
    const id = order.id;
    var arguments: Arguments = .{};
    if (core.uplink.store_job.write(&arguments, worker.program, worker.path, order)) |why|
        return worker.jobs.end(id, .{ .failed = core.uplink.store_job.messageOf(why) });
    const child = StoreChild.start(&arguments) catch return worker.jobs.end(id, .{
        .failed = core.uplink.store_job.messageOf("no process could be started for it"),
    });
    if (!worker.jobs.isRunning(id)) worker.jobs.begin(id);
    worker.works.set(queue, .{ .child = child, .purpose = .{ .job = id } });
}

fn orderOf(orders: []const Order, id: base.Uuid) *const Order {
    for (orders) |*order| if (order.id.eql(id)) return order;
    unreachable;
}

/// A version of which something was repaired may be whole again: it is verified soon.
fn takeMended(worker: *StoreWorker, now_ms: u64) void {
    const repairer = worker.repairer orelse return;
    // It may be verified just now, and more damage be found.
    if (worker.works.getPtr(.images).* != null) return;
    while (repairer.takeMended()) |id| {
        if (worker.inventory.checkAgain(id)) worker.next_check_ms = now_ms;
    }
}

fn beginCheck(worker: *StoreWorker, now_ms: u64) void {
    if (now_ms < worker.next_check_ms) return;
    const id = worker.inventory.nextToCheck(sys.unixMs()) orelse return;
    worker.next_check_ms = now_ms + turn_ms;
    var arguments: Arguments = .{};
    core.uplink.store_job.writeCheck(&arguments, worker.program, worker.path, id);
    const child = StoreChild.start(&arguments) catch return;
    worker.works.set(.images, .{ .child = child, .purpose = .{ .check = id } });
}

fn isInUpkeep(worker: *StoreWorker) bool {
    const work = if (worker.works.getPtr(.images).*) |*work| work else return false;
    return work.purpose == .upkeep;
}

fn beginUpkeep(worker: *StoreWorker, now_ms: u64) bool {
    const what = worker.upkeep.next(&worker.inventory, worker.path, now_ms) orelse return false;
    var arguments: Arguments = .{};
    core.uplink.store_job.writeUpkeep(&arguments, worker.program, worker.path, @tagName(what));
    const child = StoreChild.start(&arguments) catch {
        worker.upkeep.postpone(now_ms);
        return false;
    };
    worker.works.set(.images, .{ .child = child, .purpose = .{ .upkeep = what } });
    return true;
}

/// Devices' writes go through this process: it closes what a job removes or makes a version of.
fn holdFor(worker: *StoreWorker, order: *const Order, now_ms: u64) LayerHold.Answer {
    const version_id = core.uplink.store_job.layerOf(order) orelse {
        worker.endHold();
        return .held;
    };
    const answer = worker.askHold(.{ .version = version_id }, now_ms);
    const waited_ms = now_ms -| worker.wanted_layer.?.since_ms;
    return if (answer == .written and waited_ms < hold_limit_ms) .waiting else answer;
}

fn askHold(worker: *StoreWorker, subject: LayerHold.Subject, now_ms: u64) LayerHold.Answer {
    const is_asked =
        if (worker.wanted_layer) |wanted| std.meta.eql(wanted.subject, subject) else false;
    if (!is_asked) worker.wanted_layer = .{ .subject = subject, .since_ms = now_ms };
    return worker.hold.ask(subject);
}

/// Reports, for devices whose write owner is to be another edge, whether this one keeps any of
/// their writes: not before the packet loop has confirmed that it begins none. It needs no
/// store and no process.
pub fn releaseHomes(worker: *StoreWorker, now_ms: u64) void {
    const orders = if (worker.orders) |box| box.orders else return;
    const id = worker.jobs.next(.changes, orders, now_ms) orelse return;
    const order = orderOf(orders, id);
    const device_id = core.uplink.store_job.releasedOf(order) orelse return;
    if (worker.askHold(.{ .device = device_id }, now_ms) != .held) return;
    worker.endHold();
    const why: []const u8 = if (worker.keepsOf(device_id)) |keeps|
        if (keeps)
            "it still keeps writes of the device, or a layer that cannot be read: drop, seal or discard those first"
        else
            ""
    else |_|
        "its store cannot be read";
    worker.jobs.end(id, if (why.len == 0) .{ .done = .{} } else .{
        .failed = core.uplink.store_job.messageOf(why),
    });
}

fn keepsOf(worker: *StoreWorker, device_id: base.Uuid) !bool {
    var on = try store_module.LinuxFiles.open(worker.path);
    defer on.close();
    return store_module.device_layers.keepsOf(on.files(), device_id);
}

fn endHold(worker: *StoreWorker) void {
    if (worker.wanted_layer == null) return;
    worker.wanted_layer = null;
    worker.hold.end();
}

pub fn wait(worker: *StoreWorker) void {
    const queues = std.enums.values(Queue);
    var polled: [queues.len + 2]linux.pollfd =
        @splat(.{ .fd = -1, .events = linux.POLL.IN, .revents = 0 });
    for (queues, polled[0..queues.len]) |queue, *one|
        if (worker.works.getPtr(queue).*) |*work| {
            one.fd = work.child.output_fd;
        };
    polled[queues.len].fd = worker.wake_fd;
    if (worker.list) |*child| polled[queues.len + 1].fd = child.output_fd;
    var timeout: linux.timespec = .{ .sec = turn_ms / std.time.ms_per_s, .nsec = 0 };
    _ = linux.ppoll(&polled, polled.len, &timeout, null);
    var count: [8]u8 = undefined;
    _ = linux.read(worker.wake_fd, &count, count.len);
}

pub fn hear(worker: *StoreWorker) void {
    for (std.enums.values(Queue)) |queue| if (worker.works.getPtr(queue).*) |*work| {
        const listener: WorkListener = .{ .worker = worker, .work = work };
        if (work.child.read(listener, WorkListener.take) == .over) worker.endWork(queue);
    };
    if (worker.list) |*child| if (child.read(worker, takeListLine) == .over) worker.endList();
}

const WorkListener = struct {
    worker: *StoreWorker,
    work: *Work,

    fn take(listener: WorkListener, line: []const u8) void {
        const worker, const work = .{ listener.worker, listener.work };
        switch (core.uplink.store_job.parse(line) orelse return) {
            .progress => |said| switch (work.purpose) {
                .job => |id| worker.jobs.progress(id, said.done_bytes, said.total_bytes),
                .check => {},
                // What it frees meanwhile has no known size.
                .upkeep => if (said.total_bytes > 0)
                    worker.findings.setPacking(said.done_bytes, said.total_bytes),
            },
            .version => |said| work.made = said.made,
            .did => |message| work.did = message,
            .failed => |message| work.why = core.uplink.store_job.withoutPath(message, worker.path),
            .damaged => |damage| {
                const id = damage.id;
                worker.inventory.note(.{ .id = id, .unixMs = sys.unixMs(), .isDamaged = true });
                log.info(
                    "The version {f} in the store is damaged: restore it from another edge, or import it again.",
                    .{id},
                );
                if (worker.repairer) |repairer| if (damage.at_byte) |byte|
                    repairer.report(id, byte / store_module.block.block_size);
            },
            .other => {},
        }
    }
};

/// Its output is closed: it has printed everything.
fn endWork(worker: *StoreWorker, queue: Queue) void {
    var work = worker.works.get(queue).?;
    worker.works.set(queue, null);
    const code = work.child.finish();
    if (queue == .changes) worker.endHold();
    const is_done = code == 0;
    switch (work.purpose) {
        .job => |id| {
            if (work.why.count == 0) work.why =
                core.uplink.store_job.messageOf("its process ended before the job was done");
            if (code == core.uplink.store_job.exit_busy)
                worker.jobs.postpone(id, nowMs(), work.why)
            else
                worker.endJob(id, queue, if (is_done)
                    .{ .done = .{ .made = work.made, .did = work.did } }
                else
                    .{ .failed = work.why });
            worker.next_list_ms = 0;
            worker.next_profiles_ms = 0;
            worker.profiles_eager_until_ms = nowMs() + profiles_eager_ms;
        },
        .check => |id| {
            if (is_done)
                worker.inventory.note(.{ .id = id, .unixMs = sys.unixMs(), .isDamaged = false });
            // A version that could not be verified is not tried again at once.
            worker.next_check_ms = nowMs() + @as(u64, if (is_done) turn_ms else check_delay_ms);
            worker.keepChecks();
        },
        .upkeep => worker.endUpkeep(&work, code),
    }
    worker.findings.publish(&worker.inventory);
}

fn endUpkeep(worker: *StoreWorker, work: *const Work, code: ?u8) void {
    worker.findings.setPacking(0, 0);
    worker.next_list_ms = 0;
    // Somebody changes the store by hand.
    if (code == core.uplink.store_job.exit_busy) return worker.upkeep.postpone(nowMs());
    worker.upkeep.onEnd(work.purpose.upkeep, code == 0, nowMs());
    if (code != 0) return log.info("The versions in the store were not packed again: {s}", .{
        if (work.why.count > 0) work.why.constSlice() else "the process ended before it was done",
    });
    var text: [StoreUpkeep.text_size]u8 = undefined;
    worker.data.write(upkeep_name, worker.upkeep.write(&text)) catch {};
    worker.findings.tellReplaced();
}

/// Its process has ended. What was packed is sent before the job is done.
fn endJob(
    worker: *StoreWorker,
    id: base.Uuid,
    queue: Queue,
    how: core.uplink.store_jobs.StoreJobs.End,
) void {
    var told = how;
    if (queue == .differences and worker.jobs.isRunning(id)) {
        const order = orderOf(worker.orders.?.orders, id);
        const is_pack = core.uplink.difference_order.packOf(order) != null;
        switch (told) {
            .done => |*done| {
                if (is_pack) {
                    const context = worker.transferContext();
                    const next = worker.differences.beginSend(context, order);
                    assert(worker.onTransfer(id, next));
                    return;
                }
                done.did = worker.differences.didOf(order, done.did);
            },
            .failed => worker.differences.onImportFailed(),
        }
    }
    worker.jobs.end(id, told);
}

fn takeListLine(worker: *StoreWorker, line: []const u8) void {
    switch (core.uplink.store_job.parse(line) orelse return) {
        .version => |said| worker.addFound(said.stored),
        .other => |stored| worker.addFound(stored),
        .damaged => |damage| worker.addFound(.{
            .version_id = damage.id,
            .state = .damaged,
            .own_bytes = 0,
            .shared_bytes = 0,
            .reclaimable_bytes = 0,
        }),
        .failed => |message| {
            worker.is_list_whole = false;
            log.info("The store {s} cannot be listed: {s}", .{ worker.path, message.constSlice() });
        },
        .progress, .did => {},
    }
}

fn addFound(worker: *StoreWorker, version: core.uplink.store_job.StoredVersion) void {
    if (worker.found_count == worker.found.len) return;
    worker.found[worker.found_count] = version;
    worker.found_count += 1;
}

fn endList(worker: *StoreWorker) void {
    const code = worker.list.?.finish();
    worker.list = null;
    // 1: one is damaged, as its line says.
    if (!worker.is_list_whole or code == null or code.? > 1) return;
    const now_ms = nowMs();
    const is_again = worker.inventory_told_ms == 0 or
        now_ms >= worker.inventory_told_ms + core.uplink.store_inventory.report_interval_ms;
    worker.inventory.set(worker.found[0..worker.found_count], is_again);
    worker.findings.publish(&worker.inventory);
}

/// Sends at most one message, when it is due.
fn send(worker: *StoreWorker, client: *UplinkClient, now_ms: u64) void {
    const has_page = worker.facts != null and worker.inventory.page_from != null;
    if (now_ms < worker.back_off.not_before_ms) return;
    if (!has_page and !worker.jobs.isDue(now_ms -| worker.told_ms)) return;
    if (has_page and worker.inventory.page_from.? == 0) worker.scan += 1;
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    const text = worker.write(has_page);
    var answer_buffer: [core.uplink.message.body_size_max]u8 = undefined;
    client.key = worker.rotation.key();
    const result =
        client.request(.POST, "/edge/v1/store", text, request_timeout_ms, &answer_buffer);
    worker.told_ms = now_ms;
    switch (UplinkClient.meaning(arena.allocator(), result)) {
        .ok => {
            worker.back_off.reset();
            if (has_page) {
                worker.inventory.onPageSent();
                worker.inventory_told_ms = now_ms;
                // Nothing was sent about jobs, and what there is to report follows at once.
            } else worker.settle(arena.allocator(), (result catch unreachable).body);
        },
        .nothing => worker.back_off.fail(now_ms, randomNumber()),
        .later => |after_ms| worker.back_off.wait(now_ms, randomNumber(), after_ms),
        .refused => |refused| {
            worker.back_off.fail(now_ms, randomNumber());
            if (refused.status == 404) worker.back_off.not_before_ms = now_ms + unknown_route_ms;
            worker.is_stopped = refused.code == .edge_revoked;
            if (worker.is_stopped) for (std.enums.values(Queue)) |queue| worker.stopWork(queue);
        },
    }
}

fn write(worker: *StoreWorker, has_page: bool) []const u8 {
    var writer: Io.Writer = .fixed(worker.body);
    writer.writeByte('{') catch unreachable;
    if (worker.facts) |*facts|
        core.uplink.store_inventory.writeFacts(&writer, facts) catch unreachable;
    // Starts of an edge have growing numbers, so that scans only grow.
    if (has_page)
        worker.inventory.writePage(&writer, worker.epoch << 20 | worker.scan) catch unreachable;
    writer.writeAll("\"jobs\":") catch unreachable;
    // A page and reports together might exceed the size of a message.
    if (has_page) writer.writeAll("[]") catch
        unreachable else worker.jobs.writeReports(&writer, .unreported) catch unreachable;
    writer.writeByte('}') catch unreachable;
    return writer.buffered();
}

fn settle(worker: *StoreWorker, arena: std.mem.Allocator, body: []const u8) void {
    const Settled = struct { settledJobs: []const base.Uuid };
    const answer = core.uplink.message.parse(Settled, arena, body) catch return;
    worker.jobs.onReported(answer.settledJobs);
    worker.stopUnwanted();
}

/// Results must not be lost while the control plane is unreachable.
pub fn keep(worker: *StoreWorker) void {
    if (!worker.jobs.is_end_changed) return;
    const buffer = worker.gpa.alloc(u8, StoreJobs.over_size_max + 16) catch return;
    defer worker.gpa.free(buffer);
    var writer: Io.Writer = .fixed(buffer);
    worker.jobs.writeReports(&writer, .over) catch unreachable;
    // Tried again with the next turn.
    worker.data.write(jobs_name, writer.buffered()) catch return;
    worker.jobs.is_end_changed = false;
}

fn keepChecks(worker: *StoreWorker) void {
    var text: Io.Writer.Allocating = .init(worker.gpa);
    defer text.deinit();
    std.json.Stringify.value(
        worker.inventory.checks[0..worker.inventory.check_count],
        .{},
        &text.writer,
    ) catch return;
    worker.data.write(checks_name, text.written()) catch {};
}

/// Files that cannot be read count as absent: work is done again, which is harmless.
fn restore(worker: *StoreWorker) void {
    var arena: std.heap.ArenaAllocator = .init(worker.gpa);
    defer arena.deinit();
    if (worker.data.read(arena.allocator(), jobs_name)) |text|
        worker.jobs.restore(arena.allocator(), text) catch log.info(
            "The results of earlier store jobs cannot be read; the jobs run again.",
            .{},
        )
    else |_| {}
    if (worker.data.read(arena.allocator(), upkeep_name)) |text|
        worker.upkeep.restore(text)
    else |_| {}
    const text = worker.data.read(arena.allocator(), checks_name) catch return;
    const checks = core.uplink.message.parse(
        []const core.uplink.store_inventory.Check,
        arena.allocator(),
        text,
    ) catch return;
    worker.inventory.check_count = @intCast(@min(checks.len, worker.inventory.checks.len));
    @memcpy(
        worker.inventory.checks[0..worker.inventory.check_count],
        checks[0..worker.inventory.check_count],
    );
}

const FactsError = store_module.files.Error || store_module.store_dir.Error ||
    error{ OutOfMemory, RecordDamaged };

fn readFacts(
    gpa: std.mem.Allocator,
    path: []const u8,
) FactsError!core.uplink.store_job.StoreFacts {
    var on = try store_module.LinuxFiles.open(path);
    defer on.close();
    var opened = try store_module.Store.open(gpa, on.files(), .{ .cache_nodes = 16 });
    defer opened.close(gpa);
    return .{ .id = opened.id, .public_key = opened.public_key.toBytes(), .format = 1 };
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

fn randomNumber() u64 {
    var bytes: [8]u8 = undefined;
    sys.random(&bytes);
    return std.mem.readInt(u64, &bytes, .little);
}

test {
    _ = @import("store_worker_test.zig");
}
