//! Starts `serve` step by step. A step that fails leaves one sentence for a person.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const host = @import("host");
const options_module = @import("options.zig");
const networks = @import("networks.zig");
const boot_records = @import("records/boot_records.zig");
const edge_store = @import("edge_store.zig");
const TableSizes = @import("table_sizes.zig");
const standalone = @import("standalone.zig");
const trusted_networks = @import("trusted_networks.zig");
const Edge = @import("edge.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

const Complaint = options_module.Complaint;

pub const Error = options_module.Error || error{OutOfMemory};

pub fn prepare(edge: *Edge, complaint: *Complaint) Error!void {
    edge.started_us = host.sys.monotonicUs();
    const found =
        try networks.find(edge.init.arena.allocator(), edge.init.io, &edge.options, complaint);
    try trusted_networks.check(edge.options.trusted.items, complaint);
    const memory_bytes = host.machine_facts.memoryTotal();
    const sizes: TableSizes = try .choose(edge.options.devices_max, memory_bytes, .{
        .is_alone = edge.options.isAlone(),
        .shards = shardCount(&edge.options),
    }, complaint);
    edge.sizes = sizes;
    const seed = randomSeed();
    edge.io = .{
        .versions = try .init(edge.gpa, host.version_table.VersionTable.capacity_default),
        .files = &edge.files,
        .listener = edge.listener(),
    };
    edge.peers = try .init(edge.gpa, .{
        .epoch = 1,
        .boots_max = sizes.boots(),
        .others_max = sizes.boots(),
        .seed = seed,
    });
    edge.boots = .{
        .io = &edge.io,
        .table = try .init(edge.gpa, .{ .capacity = sizes.boots(), .seed = seed }),
        .peers = &edge.peers,
        .discovery = .{ .devices = try .init(edge.gpa) },
        .caches = .none(edge.gpa, &edge.io),
        .profiles = .none(edge.gpa, &edge.io),
        .network = ownNetwork(&found),
        .clear = edge.options.clear,
        .trusted = edge.options.trusted.items,
    };
    if (edge.options.silence_limit_s) |seconds|
        edge.boots.table.silence_limit_us = @as(u64, seconds) * std.time.us_per_s;
    if (edge.options.vdisk != null) try standalone.prepareFile(edge, complaint);
    if (edge.options.version) |id| try standalone.prepareVersion(edge, id, complaint);
    try loadBootFiles(edge, complaint);
    const stream_key = try prepareData(edge, complaint);
    const open = try openSockets(edge, found.listens, complaint);
    edge.io.interfaces = try interfacesOf(edge, found.listens);
    try prepareLoop(edge, open, &found, stream_key, complaint);
    try boot_records.prepareCaptures(edge, complaint);
    if (!edge.options.isAlone()) try prepareUplink(edge, complaint);
    try prepareWriteCaches(edge, complaint);
    takeWriteCaches(edge);
    try prepareProfiles(edge, complaint);
    try loadJournal(edge);
    try limitUnregistered(edge);
    try prepareDiskWatch(edge, complaint);
    try prepareMetrics(edge, complaint);
}

/// The other slots are for registered devices alone.
fn limitUnregistered(edge: *Edge) error{OutOfMemory}!void {
    const boots = &edge.boots;
    const boots_max = edge.sizes.unregistered_max;
    boots.table.unregistered_max = boots_max;
    // However large the table is, nobody needs to begin more than these in one go.
    boots.unregistered = try .init(edge.gpa, @min(boots_max, 2048), randomSeed());
}

fn randomSeed() u64 {
    var seed: [8]u8 = undefined;
    host.sys.random(&seed);
    return std.mem.readInt(u64, &seed, .little);
}

fn shardCount(options: *const options_module.Serve) u16 {
    return options.stream_shards orelse
        host.stream_shards.shardCount(std.Thread.getCpuCount() catch 1);
}

fn prepareMetrics(edge: *Edge, complaint: *Complaint) Error!void {
    const address = edge.options.metrics orelse return;
    const listener = host.MetricsServer.open(address) catch |problem| return complaint.set(
        "--metrics {f} cannot be opened: {s}.",
        .{ address, switch (problem) {
            error.PortInUse => "another program has the port",
            error.PermissionDenied => "a port below 1024 needs root or CAP_NET_BIND_SERVICE",
            error.AddressNotHere => "this machine has no such address",
            error.SystemCallFailed => "the system refused",
        } },
    );
    const page = try edge.gpa.create(host.metrics_page.MetricsPage);
    page.* = .{ .io = edge.init.io };
    const server = try edge.gpa.create(host.MetricsServer);
    server.* = .{
        .page = page,
        .started_us = edge.started_us,
        .link = edge.link,
        .log = if (edge.log) |*log| log else null,
        .epoch = edge.epoch,
        .store_fd = edge.io.store_fd,
        .store_worker = edge.store_worker,
        .profiles = edge.io.profiles,
        .packer = edge.packer,
        .listener = listener,
    };
    edge.metrics = server;
}

/// Starts to watch the disks, and names what a cold start forgets. After everything else: it reads
/// the rest of the edge.
fn prepareDiskWatch(edge: *Edge, complaint: *Complaint) Error!void {
    const options = &edge.options;
    const arena = edge.init.arena.allocator();
    const watch = &edge.disk_watch;
    if (edge.data) |*data| {
        watch.data = data;
        watch.data_path = options.data.?;
        watch.store_path = options.store orelse
            try std.fs.path.join(arena, &.{ options.data.?, "store" });
    }
    if (options.store) |path| watch.store_path = path;
    watch.store_fd = edge.io.store_fd orelse edge.caches_fd;
    watch.limit_bytes = options.reserve;
    watch.log = if (edge.log) |*log| log else null;
    watch.worker = edge.file_worker;
    edge.cold_start = .{ .store_fd = watch.store_fd, .packer = edge.packer };
    edge.io.cold_start = &edge.cold_start;
    if (watch.data == null and watch.store_fd == null) return;
    edge.io.disk_watch = watch;
    watch.start() catch return complaint.set(
        "The thread that watches disks cannot be started on this system.",
        .{},
    );
}

/// Profiles are kept in the store's directory, or in that of the data directory; without either
/// nothing is learned.
fn prepareProfiles(edge: *Edge, complaint: *Complaint) Error!void {
    if (!edge.options.boot_profile) return;
    const store_fd = edge.io.store_fd orelse blk: {
        const data = if (edge.data) |*data| data else return;
        const dir = data.subDir("store") catch
            return host.health.set(.other_files_not_kept, true);
        break :blk dir.handle;
    };
    const thread = try host.ProfileThread.create(edge.gpa, edge.init.io, store_fd);
    thread.warmer.packer = edge.packer;
    thread.start() catch
        return complaint.set("The thread of boot profiles cannot be started on this system.", .{});
    edge.io.profiles = thread;
    edge.boots.profiles = try .init(edge.gpa, &edge.io, .{});
    if (edge.store_worker) |worker| worker.profiles = thread;
    edge.wantProfiles(host.sys.monotonicUs());
}

fn loadBootFiles(edge: *Edge, complaint: *Complaint) Error!void {
    const path = edge.options.boot_files orelse return;
    edge.files = host.BootFiles.load(
        edge.init.arena.allocator(),
        edge.init.io,
        path,
    ) catch |err| return switch (err) {
        error.DirectoryNotReadable => complaint.set(
            "The directory of boot programs {s} cannot be read.",
            .{path},
        ),
        error.FileNotReadable => complaint.set(
            "A file in {s} cannot be read, or is larger than 64 MiB; boot programs are smaller.",
            .{path},
        ),
        error.TooManyFiles => complaint.set(
            "There are more than {d} boot programs or {d} sets of them in {s}.",
            .{ host.BootFiles.count_max, host.BootFiles.sets_max, path },
        ),
        error.OutOfMemory => error.OutOfMemory,
    };
    for (edge.files.left_out) |*set|
        if (set.why != error.NoManifest)
            host.log.info("The boot program set {s}/{s} is left out: it {s}.", .{
                path, set.name, host.program_set.sentence(set.why),
            });
}

/// Opens the data directory, if there is one; returns the key with which devices resume.
fn prepareData(edge: *Edge, complaint: *Complaint) Error![32]u8 {
    const path = edge.options.data orelse {
        var random_key: [32]u8 = undefined;
        host.sys.random(&random_key);
        return random_key;
    };
    edge.data = try openData(edge.init.io, path, complaint);
    const data = &edge.data.?;
    // On a full disk, what follows needs the reserve.
    if (host.file_system.spaceOf(data.dir.handle)) |space|
        host.DiskWatch.Reserve.adjust(data, &space)
    else |_| {}
    const worker = try startWorker(edge, complaint);
    edge.file_worker = worker;
    edge.journal = try .open(edge.gpa, worker, data.dir.handle);
    return secretOrNew(data, "stream.key", .stream_key_not_kept, &edge.disk_watch.stream_key);
}

/// Returns a secret of the data directory, or where the disk has lost it or does not take it, a new
/// one. `pending` is written as soon as the disk takes it.
fn secretOrNew(
    data: *const host.DataDir,
    comptime name: [:0]const u8,
    problem: host.health.Problem,
    pending: *?[32]u8,
) [32]u8 {
    return data.secret(name) catch |err| {
        var fresh: [32]u8 = undefined;
        host.sys.random(&fresh);
        // Only what is certainly lost is replaced: a disk that fails now may read it again later.
        if (err != error.NotReadable) pending.* = fresh;
        host.health.set(problem, true);
        return fresh;
    };
}

fn startWorker(edge: *const Edge, complaint: *Complaint) Error!*host.Worker {
    const worker = try edge.gpa.create(host.Worker);
    worker.* = try .init(edge.init.io, host.journal_writer.worker_size);
    worker.start() catch
        return complaint.set("A thread that writes files cannot be started on this system.", .{});
    return worker;
}

pub fn openData(io: std.Io, path: []const u8, complaint: *Complaint) Error!host.DataDir {
    return host.DataDir.open(io, path) catch |err| switch (err) {
        error.NotUsable => complaint.set(
            "The data directory {s} cannot be created or written.",
            .{path},
        ),
        error.Locked => complaint.set("Another edge already uses the data directory {s}.", .{path}),
    };
}

fn openSockets(
    edge: *Edge,
    listens: []const host.EdgeSockets.Listen,
    complaint: *Complaint,
) Error!host.EdgeSockets {
    var problem: host.EdgeSockets.Problem = undefined;
    const left = edge.init.environ_map.get(host.InheritedSockets.variable);
    var inherited: host.InheritedSockets = .find(left);
    return host.EdgeSockets.open(
        edge.gpa,
        listens,
        .{
            .ports = edge.options.ports,
            .peers = !edge.options.isAlone(),
            .shards = shardCount(&edge.options),
            .inherited = &inherited,
        },
        &problem,
    ) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Problem => explainSocket(problem, complaint),
    };
}

fn explainSocket(problem: host.EdgeSockets.Problem, complaint: *Complaint) Error {
    const listen = problem.ip;
    const option = switch (problem.what) {
        .dhcp => "--dhcp-port",
        .pxe => "--pxe-port",
        .tftp => "--tftp-port",
        .http => "--http-port",
        .stream => "--stream-port",
        .wol => "--wol-target",
        .peer => "--peer-port",
    };
    return switch (problem.why) {
        error.PortInUse => complaint.set(
            "Port {d} ({t}) of {f} is in use by another program; stop it or choose another port with {s}.",
            .{ problem.port, problem.what, listen, option },
        ),
        error.PermissionDenied => complaint.set(
            "Port {d} ({t}) needs root or CAP_NET_BIND_SERVICE and CAP_NET_RAW; or choose one above 1023 with {s}.",
            .{ problem.port, problem.what, option },
        ),
        error.AddressNotHere => complaint.set(
            "{f} is not an address of this machine; --listen needs one that is.",
            .{listen},
        ),
        error.SystemCallFailed => complaint.set("Port {d} ({t}) of {f} cannot be opened.", .{
            problem.port, problem.what, listen,
        }),
    };
}

/// Of this machine's memory, that of answer pieces.
const packed_memory_part = 16;
const packed_memory_max = 256 << 20;

/// Starts the thread that packs units; null: nothing is packed.
fn startPacker(edge: *Edge, complaint: *Complaint) Error!?*host.PiecePacker {
    const machine = host.machine_facts.memoryTotal() orelse packed_memory_max;
    const usual = @min(machine / packed_memory_part, packed_memory_max);
    const size = edge.options.packed_memory orelse usual;
    if (size < host.AnswerPieces.size_min) return null;
    const packer = try edge.gpa.create(host.PiecePacker);
    packer.* = host.PiecePacker.init(edge.gpa, size) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.SystemCallFailed => complaint.set("The system refused a pipe.", .{}),
    };
    packer.start() catch
        return complaint.set("The thread that packs units cannot be started.", .{});
    edge.packer = packer;
    return packer;
}

fn prepareLoop(
    edge: *Edge,
    open: host.EdgeSockets,
    found: *const networks.Networks,
    stream_key: [32]u8,
    complaint: *Complaint,
) Error!void {
    const options = &edge.options;
    var keys: core.stream.Server.Keys =
        .{ .cookie = undefined, .session = undefined, .resumption = stream_key };
    host.sys.random(&keys.cookie);
    host.sys.random(&keys.session);
    edge.schedules = .{ .runner = .none, .boots = &edge.boots };
    edge.loop = host.EdgeLoop.init(edge.gpa, open, &edge.boots, .{
        .ports = options.ports,
        .dhcp = .{
            .links = found.links,
            .networks = found.networks,
            .http_port = options.ports.http,
        },
        .stream_keys = keys,
        .sessions_max = edge.sizes.sessions(),
        .stream_ciphers = if (edge.options.clear) core.stream.seal.withClear() else null,
        .packer = try startPacker(edge, complaint),
        .wol_target = options.wol_target,
        .schedules = &edge.schedules,
        .router_ports = try openRouterPorts(edge, found.listens, complaint),
        .router_mode = edge.options.router_mode,
        .listeners = try openListeners(edge, found.listens),
        .probers = try openProbers(edge, found),
    }) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.SystemCallFailed => complaint.set(
            "The system refused what the packet loop needs.",
            .{},
        ),
    };
    const dhcp = if (edge.loop.dhcp) |*dhcp| dhcp else return;
    edge.boots.leases = &dhcp.policy.service;
    const data = if (edge.data) |*data| data else return;
    edge.lease_file = try host.lease_file.LeaseFile.open(
        edge.gpa,
        edge.file_worker.?,
        data.dir.handle,
        &dhcp.policy.service,
        edge.started_us,
    );
    edge.io.lease_file = &edge.lease_file.?;
}

/// Returns the interfaces that devices are attached to; loopback is none of them.
fn interfacesOf(
    edge: *const Edge,
    listens: []const host.EdgeSockets.Listen,
) error{OutOfMemory}![]const host.sockets.Interface {
    const arena = edge.init.arena.allocator();
    var interfaces: std.ArrayList(host.sockets.Interface) = .empty;
    for (listens) |*listen| if (listen.interface) |interface|
        try interfaces.append(arena, interface);
    return interfaces.items;
}

/// Returns the network of this edge's first address.
fn ownNetwork(found: *const networks.Networks) base.Ip4 {
    for (found.networks) |*network| if (network.link == 0) return network.subnet.ip;
    return found.links[0].ip;
}

/// Opens one for each interface. By default an edge does without where it cannot; what an option
/// wants has to work.
fn openRouterPorts(
    edge: *const Edge,
    listens: []const host.EdgeSockets.Listen,
    complaint: *Complaint,
) Error![]host.RouterPort {
    var ports: std.ArrayList(host.RouterPort) = .empty;
    const is_wanted = edge.options.router_mode == .everybody;
    for (listens) |*listen| {
        const interface = if (listen.interface) |*interface| interface else continue;
        const is_there = for (ports.items) |*other| {
            if (other.interface_index == interface.index) break true;
        } else false;
        if (is_there) continue;
        const port = host.RouterPort.open(interface) catch |err| {
            if (!is_wanted) continue;
            return switch (err) {
                error.PermissionDenied => complaint.set(
                    "--router-advertisement needs root or CAP_NET_RAW.",
                    .{},
                ),
                error.NoIpv6 => complaint.set(
                    "--router-advertisement needs IPv6, and {s} has none.",
                    .{interface.name()},
                ),
                error.SystemCallFailed => complaint.set(
                    "The system refused the socket of --router-advertisement on {s}.",
                    .{interface.name()},
                ),
            };
        };
        try ports.append(edge.gpa, port);
    }
    return ports.items;
}

/// Opens one for each link whose network this edge leases addresses of.
fn openProbers(
    edge: *const Edge,
    found: *const networks.Networks,
) error{OutOfMemory}![]?host.AddressProber {
    const probers = try edge.gpa.alloc(?host.AddressProber, found.listens.len);
    @memset(probers, null);
    for (probers, found.listens, 0..) |*prober, *listen, link| {
        const interface = listen.interface orelse continue;
        const leases = for (found.networks) |*network| {
            if (network.link == @as(u8, @intCast(link)) and network.mode == .server) break true;
        } else false;
        if (!leases) continue;
        prober.* = host.AddressProber.open(interface.index) catch |err| no: {
            if (err != error.NotEthernet) host.log.info(
                "Cannot ask on {s} whether an address is in use before it is leased ({s}).",
                .{
                    interface.name(),
                    if (err == error.NotPermitted)
                        "needs root or CAP_NET_RAW"
                    else
                        "the system refused",
                },
            );
            break :no null;
        };
    }
    return probers;
}

/// Opens one for each interface. Those are missing where the system does not let this process
/// listen: the edge serves without them and says what it cannot see.
fn openListeners(
    edge: *const Edge,
    listens: []const host.EdgeSockets.Listen,
) error{OutOfMemory}![]host.SegmentListener {
    var listeners: std.ArrayList(host.SegmentListener) = .empty;
    for (listens, 0..) |*listen, index| {
        const listened = listen.interface orelse
            (host.sockets.interfaceOf(.init(127, 0, 0, 1)) catch null) orelse continue;
        const is_heard = for (listens[0..index]) |*earlier| {
            const other = if (earlier.interface) |found| found.index else 0;
            if (other == if (listen.interface) |found| found.index else 0) break true;
        } else false;
        if (is_heard) continue;
        try listeners.append(edge.gpa, try openListener(edge, &listened) orelse continue);
    }
    return listeners.items;
}

fn openListener(
    edge: *const Edge,
    listened: *const host.sockets.Interface,
) error{OutOfMemory}!?host.SegmentListener {
    const ports = &edge.options.ports;
    return host.SegmentListener.open(edge.gpa, listened.index, .{
        .dhcp = ports.dhcp,
        .pxe = ports.pxe,
        .tftp = ports.tftp,
        .http = ports.http,
    }) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        error.NotPermitted, error.SystemCallFailed => {
            host.log.info(
                "Cannot listen on {s} ({s}): offers of other DHCP servers are not heard, and packets of boots are not captured.",
                .{
                    listened.name(),
                    if (err == error.NotPermitted)
                        "needs root or CAP_NET_RAW"
                    else
                        "the system refused",
                },
            );
            return null;
        },
    };
}

const OwnIdentity = struct {
    identity: host.data_dir.Identity,
    signing_key: [32]u8,
    key: base.Ed25519.KeyPair,
    seal_secret: base.x25519.Key,
    transport: host.Transport.Settings,
};

fn readIdentity(
    edge: *Edge,
    data: *const host.DataDir,
    path: []const u8,
    complaint: *Complaint,
) Error!OwnIdentity {
    const identity = data.identity(edge.init.arena.allocator()) catch |err| return switch (err) {
        error.Missing => complaint.set(
            "{s} is not the data directory of an enrolled edge; run bootfarm-edge enrol first, or give --vdisk.",
            .{path},
        ),
        error.NotReadable, error.Damaged => complaint.set(
            "{s}/identity.json cannot be read; enrol this edge again into another data directory.",
            .{path},
        ),
    };
    const signing_key = core.uplink.key_text.parse(identity.signingKey) catch
        return complaint.set(
            "{s}/identity.json has no signing key; enrol this edge again into another data directory.",
            .{path},
        );
    const seed = data.secret("edge.key") catch
        return complaint.set(
            "{s}/edge.key cannot be read; enrol this edge again into another data directory.",
            .{path},
        );
    const key = base.Ed25519.KeyPair.generateDeterministic(seed) catch
        return complaint.set(
            "{s}/edge.key is not a key; enrol this edge again into another data directory.",
            .{path},
        );
    // An edge that was enrolled before there was one creates it, and its heartbeats name it.
    const seal_secret =
        secretOrNew(data, "seal.key", .seal_key_not_kept, &edge.disk_watch.seal_key);
    return .{
        .identity = identity,
        .signing_key = signing_key,
        .key = key,
        .seal_secret = seal_secret,
        .transport = try edge.options.uplink.settings(edge.init, identity.url, complaint),
    };
}

/// Prepares identity, epoch, report log, the state on disk, and the uplink's threads.
fn prepareUplink(edge: *Edge, complaint: *Complaint) Error!void {
    const path = edge.options.data.?;
    const data = &edge.data.?;
    const own = try readIdentity(edge, data, path, complaint);
    var log_files: host.LogFiles = .below(edge.init.io, data.dir);
    const epoch = data.nextEpoch(host.ReportLog.newestEpoch(&log_files), host.sys.unixMs());
    edge.epoch = epoch.number;
    if (!epoch.is_kept) {
        edge.disk_watch.epoch = epoch.number;
        host.health.set(.epoch_not_kept, true);
    }
    try openLog(edge, log_files, complaint);
    try edge_store.open(edge, complaint);
    try prepareOpener(edge, complaint);
    const worker = edge.file_worker.?;
    edge.power_on_file = try .open(edge.gpa, worker, data.dir.handle, &edge.power_ons);
    edge.power_order_file = try .open(edge.gpa, worker, data.dir.handle, &edge.boots.orders);
    edge.io.power_order_file = &edge.power_order_file.?;
    try prepareSchedules(edge, complaint);
    edge.peers.epoch = edge.epoch;
    edge.peers.holdings.own_http_port = edge.options.ports.http;
    edge.loop.peers = .{ .policy = .{ .table = &edge.peers, .boots = &edge.boots } };
    try boot_records.prepareReads(edge, complaint);
    try prepareThreads(edge, &own, complaint);
    try loadState(edge, .{
        .edge_id = own.identity.edgeId,
        .signing_key = own.signing_key,
        .organization_id = own.identity.organizationId,
        .named_key = host.named_key.read(data),
        .seal_secret = own.seal_secret,
    });
}

/// Prepares what the uplink's threads and that of store jobs work with; `run` starts them.
fn prepareThreads(edge: *Edge, own: *const OwnIdentity, complaint: *Complaint) Error!void {
    const data = &edge.data.?;
    const link = try edge.gpa.create(host.UplinkLink);
    link.* = .{
        .io = edge.init.io,
        .gpa = edge.gpa,
        .started_us = edge.started_us,
        .wake_fd = edge.loop.wake_fd,
    };
    edge.link = link;
    const rotation = try edge.gpa.create(host.KeyRotation);
    rotation.* = .init(edge.init.io, data, own.identity.edgeId, own.key);
    const updates = try edge.gpa.create(host.UpdateWorker);
    const worker = try edge.gpa.create(host.UplinkWorker);
    worker.* = .{
        .gpa = edge.gpa,
        .link = link,
        .report_log = &edge.log.?,
        .data = data,
        .captures = if (edge.waiting_captures) |*files| files else null,
        .reads = if (edge.waiting_reads) |*files| files else null,
        .client_options = .{
            .transport = own.transport,
            .key = own.key,
            .edge_id = own.identity.edgeId,
            .epoch = edge.epoch,
            .counter = undefined,
        },
        .address = edge.options.listens.items[0],
        .peer_port = edge.options.ports.peer,
        .stream_port = edge.options.ports.stream,
        .url = own.identity.url,
        .seal_secret = own.seal_secret,
        .identity = own.identity,
        .follower = .{ .gpa = edge.gpa },
        .signing_key = own.signing_key,
        .rotation = rotation,
        .store_fd = edge.io.store_fd.?,
        .updates = updates,
        .boot_programs = try edge.files.told(edge.init.arena.allocator()),
    };
    edge.worker = worker;
    worker.client_options.counter = &worker.counter;
    updates.* = .{
        .gpa = edge.gpa,
        .io = edge.init.io,
        .data = data,
        .slots = .{ .io = edge.init.io, .dir = data.dir },
        .client_options = worker.client_options,
        .rotation = rotation,
        .wake_fd = edge.loop.wake_fd,
    };
    edge.updates = updates;
    edge.tellTried();
    edge.store_worker = host.StoreWorker.create(edge.gpa, .{
        .io = edge.init.io,
        .data = data,
        .client_options = worker.client_options,
        .rotation = rotation,
        .store_fd = edge.io.store_fd.?,
        .epoch = edge.epoch,
        .import_sources = &edge.options.import_sources,
    }) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => complaint.set("The system refused what store jobs need.", .{}),
    };
    edge.io.hold = &edge.store_worker.?.hold;
    edge.io.store_findings = &edge.store_worker.?.findings;
    try edge_store.shareWithSite(edge);
}

fn prepareOpener(edge: *Edge, complaint: *Complaint) Error!void {
    const opener = try edge.gpa.create(host.VersionOpener);
    const files = if (edge.store) |*opened| opened.files else null;
    opener.* = host.VersionOpener.init(edge.gpa, files, edge.io.store_fd.?) catch |err|
        return switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            error.SystemCallFailed => complaint.set("The system refused a pipe.", .{}),
        };
    edge.io.version_opener = opener;
}

fn prepareSchedules(edge: *Edge, complaint: *Complaint) Error!void {
    if (edge.options.power_hook) |path| {
        const text = try edge.init.arena.allocator().dupeSentinel(u8, path, 0);
        if (linux.errno(linux.access(text, linux.X_OK)) != .SUCCESS) return complaint.set(
            "--power-hook {s} is not a program that this edge may run.",
            .{path},
        );
        const hook = try edge.gpa.create(host.PowerHook);
        hook.* = .{ .io = edge.init.io, .path = text, .wake_fd = edge.loop.wake_fd };
        edge.power_hook = hook;
        edge.io.power_hook = hook;
    }
    const runner = &edge.schedules.runner;
    runner.* = try .init(edge.gpa);
    edge.schedule_file = try .open(
        edge.gpa,
        edge.file_worker.?,
        edge.data.?.dir.handle,
        runner,
        edge.loop.wake_fd,
    );
    edge.io.schedule_file = &edge.schedule_file.?;
    runner.journal = edge.schedule_file.?.journal();
}

fn openLog(edge: *Edge, files: host.LogFiles, complaint: *Complaint) Error!void {
    const path = edge.options.data.?;
    edge.log = host.ReportLog.open(
        edge.gpa,
        files,
        .{ .epoch = edge.epoch, .size_max = edge.options.report_log_size },
    ) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.LogFromTheFuture => complaint.set(
            "The report log in {s}/reports belongs to later starts than {s}/epoch has recorded.",
            .{ path, path },
        ),
    };
    // Its own: it waits while the sender syncs the log.
    edge.report_worker = try startWorker(edge, complaint);
    edge.report_writer = .{
        .log = &edge.log.?,
        .worker = edge.report_worker.?,
        .listener = .{ .context = edge, .written = Edge.written },
    };
    edge.io.report_log = &edge.report_writer.?;
}

/// Loads the last state that the control plane sent; an edge that starts without it boots devices
/// from this one.
fn loadState(edge: *Edge, expected: core.uplink.desired_state.TrustAnchor) Error!void {
    const arena = edge.init.arena.allocator();
    const envelope = edge.data.?.read(arena, "state.json") catch |err| switch (err) {
        error.Missing => return,
        error.NotReadable => {
            host.log.info(
                "The desired state on disk cannot be read; nothing boots until the control plane sends it.",
                .{},
            );
            return;
        },
    };
    const box = host.StateBox.create(
        edge.gpa,
        envelope,
        expected,
    ) catch |refusal| switch (refusal) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |other| {
            host.log.info(
                "The desired state on disk was refused: {s}.",
                .{core.uplink.desired_state.sentence(other)},
            );
            return;
        },
    };
    edge.link.?.setPair(box.state.pair());
    edge.worker.?.keepBase(box);
    // Its key was not pinned yet if the last process ended between the two steps.
    edge.worker.?.pin(box.reached);
    edge.worker.?.rotation.order(
        if (box.state.rotateKey) |text| core.uplink.key_text.parse(text) catch null else null,
    );
    // Power commands from before the restart are not carried out now: the API repeats those that
    // still count.
    edge.applyState(box);
}

fn loadJournal(edge: *Edge) error{OutOfMemory}!void {
    const journal = if (edge.journal) |*journal| journal else return;
    try journal.load(&edge.boots.table, edge.started_us, host.sys.unixMs());
    edge.io.boot_journal = journal;
    var iterator = edge.boots.table.iterate();
    while (iterator.next()) |boot| edge.peers.onBoot(boot);
    edge.applyOrders();
}

/// Opens the directory of write caches that are kept at the edge.
fn prepareWriteCaches(
    edge: *Edge,
    complaint: *Complaint,
) (options_module.Error || error{OutOfMemory})!void {
    const options = &edge.options;
    edge.boots.write_cache = options.write_cache;
    const arena = edge.init.arena.allocator();
    const path = options.store orelse
        try std.fs.path.join(arena, &.{ options.data orelse return, "store" });
    if (options.isAlone() and !options.write_cache.class.isAtTheEdge()) return;
    const dir_fd = edge.io.store_fd orelse blk: {
        const dir = std.Io.Dir.cwd().createDirPathOpen(edge.init.io, path, .{}) catch
            return complaint.set("The directory {s} cannot be created or opened.", .{path});
        edge.caches_fd = dir.handle;
        break :blk dir.handle;
    };
    const files = try edge.gpa.create(store.LinuxFiles);
    files.* = .fromFd(dir_fd);
    const workers = try edge.gpa.create(host.LayerWorkers);
    const capacity = edge.sizes.sessions();
    workers.* = host.LayerWorkers.init(edge.gpa, capacity) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.SystemCallFailed => complaint.set(
            "The system refused what write caches need.",
            .{},
        ),
    };
    edge.boots.caches = host.Agent.WriteCaches.init(
        edge.gpa,
        &edge.io,
        files.files(),
        capacity,
        options.write_cache,
    ) catch |err| return switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.NotWritable => complaint.set(
            "{s} cannot be written, but the devices' write caches are kept there.",
            .{path},
        ),
    };
    workers.run() catch
        return complaint.set("The threads of write caches cannot be started on this system.", .{});
    edge.loop.stream.layer_workers = workers;
    edge.io.layer_workers = workers;
    edge.io.snapshots = host.SnapshotThread.create(edge.gpa, .{
        .io = edge.init.io,
        .files = files.files(),
        .store_fd = dir_fd,
        .reserve_bytes = options.reserve,
    }) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        // Another edge uses the same store.
        error.SystemCallFailed => blk: {
            host.log.info("This edge takes no snapshots of write caches: the system refused.", .{});
            break :blk null;
        },
    };
}

/// Takes the write caches that the program before this one has handed over in this process.
fn takeWriteCaches(edge: *Edge) void {
    edge.has_caches = true;
    const handle = host.inherited_caches.find(edge.init.environ_map) orelse return;
    const caches = &edge.boots.caches;
    if (caches.isAvailable()) caches.take(handle) else host.sys.close(@backingInt(handle));
    for (caches.layers[0..caches.top]) |place| if (place) |layer|
        for ([_]store.Files.Handle{ layer.inner.data, layer.inner.sums.?.handle }) |file| {
            _ = host.inherited_caches.setKept(file, false);
        };
    host.inherited_caches.closeRest(edge.init.io);
}
