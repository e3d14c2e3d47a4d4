//! The packet loop of the edge: one thread, one epoll instance, and the stream's socket beside it.
//! DHCP, TFTP, HTTP and the stream take turns. It allocates nothing after its start.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const sys = @import("sys.zig");
const Epoll = @import("net/epoll.zig");
const PageWarmer = @import("files/page_warmer.zig");
const RouterPort = @import("net/router_port.zig");
const UdpSocket = @import("net/udp_socket.zig");
const Agent = @import("edge_io.zig").Agent;
const Boots = Agent.Boots;
const DhcpPort = @import("net/dhcp_port.zig");
const http_handler = @import("http/handler.zig");
const TftpPort = @import("net/tftp_port.zig");
const StreamShards = @import("stream/shards.zig");
const StreamPort = @import("stream/port.zig");
const PiecePacker = @import("stream/piece_packer.zig");
const PeerPort = @import("net/peer_port.zig");
const HttpServer = @import("http/server.zig");
const EdgeSockets = @import("net/edge_sockets.zig");
const AddressProber = @import("net/address_prober.zig");
const SegmentListener = @import("net/segment_listener.zig");
const SegmentWatch = @import("net/segment_watch.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

pub const EdgeLoop = @This();

epoll: Epoll,
sockets: EdgeSockets,
dhcp: ?DhcpPort,
tftp: TftpPort,
stream: StreamPort,
paths: *Agent.HttpPaths,
http: HttpServer,
boots: *Boots,
/// Listens to the segment.
watch: *SegmentWatch,
/// Null without a control plane.
peers: ?PeerPort = null,
schedules: *Agent.Schedules,
routers: Agent.Routers,
/// The socket of each segment of `routers`; empty where the system has none for this process.
router_ports: []RouterPort,
/// By link.
probers: []?AddressProber,
/// The destination of magic packets.
wol_target: base.Endpoint,
signal_fd: i32,
/// Another thread writes to it to wake the loop.
wake_fd: i32,
/// Written to when records are written that answers wait for.
records_fd: i32,
next_tick_us: u64 = 0,
/// Set by the owner: the loop ends after this turn.
is_exchanged: bool = false,
/// The owner waits for a moment without a download: it runs as soon as there is one.
awaits_downloads: bool = false,
/// The stream's socket.
busy: Epoll.Busy,

pub const Options = struct {
    ports: EdgeSockets.Ports,
    /// Also decides which of the edge's addresses a device uses.
    dhcp: core.dhcp.Service.Options,
    stream_keys: core.stream.Server.Keys,
    sessions_max: u16,
    /// Null: the ciphers that this program supports.
    stream_ciphers: ?wire.stream.Ciphers = null,
    /// Packs units for the stream; null: nothing is packed.
    packer: ?*PiecePacker = null,
    wol_target: base.Endpoint,
    /// Stays where it is.
    schedules: *Agent.Schedules,
    /// Empty if the system does not let this process listen.
    listeners: []SegmentListener = &.{},
    router_ports: []RouterPort = &.{},
    router_mode: core.site.RouterDiscovery.Mode = .never,
    probers: []?AddressProber = &.{},
};

/// Callbacks of the loop's owner between turns.
pub const Owner = struct {
    context: *anyopaque,
    /// Runs once a second.
    tick: *const fn (context: *anyopaque, loop: *EdgeLoop, now_us: u64) void,
    /// Runs after `wake`.
    woken: *const fn (context: *anyopaque, loop: *EdgeLoop, now_us: u64) void,
    /// Runs after USR2.
    asked_to_exchange: *const fn (context: *anyopaque, loop: *EdgeLoop, now_us: u64) void,
};

const Token = struct {
    const signal = 0;
    const wake = 1;
    const holders = 2;
    const versions = 3;
    const tftp = 4;
    const stream = 5;
    const listener = 6;
    const segment = 7;
    const peer = 8;
    const router_discovery = 9;
    const layers = 10;
    const disk_reads = 11;
    const shards = 12;
    const file_reads = 13;
    const records = 14;
    const tftp_reads = 15;
    /// One token of each kind for every link.
    const dhcp = 16;
    const pxe = dhcp + links_max;
    const connections = pxe + links_max;

    const links_max = core.dhcp.network.links_max;
};

const tick_interval_us = std.time.us_per_s;
const events_max = 64;

pub const InitError = error{ OutOfMemory, SystemCallFailed };

/// Takes the sockets; `boots` stays the caller's and must outlive the loop. Signals
/// TERM, INT and USR2 must be blocked already, in every thread.
pub fn init(
    gpa: std.mem.Allocator,
    open: EdgeSockets,
    boots: *Boots,
    options: Options,
) InitError!EdgeLoop {
    const epoll = Epoll.init() catch return error.SystemCallFailed;
    const own: core.dhcp.network.Addresses = .{
        .links = options.dhcp.links,
        .networks = options.dhcp.networks,
        .http_port = options.ports.http,
        .stream_port = options.ports.stream,
    };
    var all = open;
    if (own.links.len > 1) for ([_]*UdpSocket{ &all.tftp, &all.stream }) |socket| {
        socket.own = own;
    };
    if (own.links.len > 1) for (all.stream_shards) |*socket| {
        socket.own = own;
    };
    const watch = try gpa.create(SegmentWatch);
    watch.* = .{ .boots = boots, .own = own, .listeners = options.listeners };
    var routers: Agent.Routers = .{ .boots = boots };
    for (options.router_ports) |_| _ = routers.add(options.router_mode);
    const paths = try gpa.create(Agent.HttpPaths);
    paths.* = .{ .boots = boots, .own = own };
    var tftp_options: core.tftp.Server.Options = .{};
    sys.random(std.mem.asBytes(&tftp_options.hash_seed));
    const catalogue = try gpa.create(Agent.Catalogue);
    catalogue.* = try .init(gpa, boots, own, tftp_options.sessions_max);
    const tftp: core.tftp.Server = try .init(gpa, catalogue.tftpCatalogue(), tftp_options);
    const tftp_policy: Agent.Tftp = try .init(gpa, tftp, boots, catalogue);
    const stream_options: core.stream.Server.Options = .{
        .keys = options.stream_keys,
        .sessions_max = options.sessions_max,
        .ciphers = options.stream_ciphers,
        .packet_size_max = wire.stream.packet_size_max,
        .codecs = if (options.packer == null) 0 else core.stream.Client.codecs,
    };
    const reads: StreamPort.Options = .{ .packer = options.packer };
    var stream: StreamPort =
        try .init(gpa, try .init(gpa, try .init(gpa, stream_options), boots), reads);
    if (all.stream_shards.len > 0) {
        stream.shards = try gpa.create(StreamShards);
        stream.shards.?.* = try .init(gpa, all.stream_shards, stream_options, options.packer);
    }
    return .{
        .epoll = epoll,
        .busy = .{ .fd = all.stream.fd, .token = Token.stream },
        .sockets = all,
        .dhcp = if (!open.hasDhcp()) null else .{
            .policy = .{ .service = try .init(gpa, options.dhcp), .boots = boots },
        },
        .tftp = try .init(gpa, tftp_policy, try makeWarmer(gpa)),
        .stream = stream,
        .paths = paths,
        .http = try makeHttp(gpa, open.listener, epoll, paths),
        .boots = boots,
        .watch = watch,
        .routers = routers,
        .router_ports = options.router_ports,
        .probers = options.probers,
        .wol_target = options.wol_target,
        .schedules = options.schedules,
        .signal_fd = openSignals() catch return error.SystemCallFailed,
        .wake_fd = openWake() catch return error.SystemCallFailed,
        .records_fd = openWake() catch return error.SystemCallFailed,
    };
}

fn makeHttp(
    gpa: std.mem.Allocator,
    listener: i32,
    epoll: Epoll,
    paths: *Agent.HttpPaths,
) InitError!HttpServer {
    var http: HttpServer = try .init(
        gpa,
        listener,
        epoll,
        Token.connections,
        http_handler.of(paths),
        connectionsFor(sys.raiseFileLimit()),
    );
    http.warmer = try makeWarmer(gpa);
    return http;
}

fn makeWarmer(gpa: std.mem.Allocator) InitError!*PageWarmer {
    const warmer = try gpa.create(PageWarmer);
    errdefer gpa.destroy(warmer);
    warmer.* = try .init(.{});
    return warmer;
}

/// Gives the agent's `Io` what the loop has for it. The loop must not move afterwards.
pub fn attach(loop: *EdgeLoop) void {
    const io = loop.boots.io;
    io.links = &loop.sockets.links;
    io.tftp_socket = &loop.sockets.tftp;
    io.stream_socket = &loop.sockets.stream;
    io.peer_socket = if (loop.sockets.peer) |*socket| socket else null;
    io.wol_target = loop.wol_target;
    io.probers = loop.probers;
    io.router_ports = loop.router_ports;
    io.records_fd = loop.records_fd;
    io.tftp = loop.tftp.calls();
    io.stream = loop.stream.calls();
}

/// Runs until TERM, INT, or an exchange.
pub fn run(loop: *EdgeLoop, owner: Owner) sys.Error!void {
    loop.attach();
    for ([_]*PageWarmer{ loop.http.warmer.?, loop.tftp.warmer }) |warmer|
        warmer.run() catch return error.SystemCallFailed;
    try loop.addAll();
    defer loop.stream.stopShards();
    while (true) {
        var buffer: [events_max]u64 = undefined;
        const tokens = try loop.waitFor(&buffer);
        const now_us = sys.monotonicUs();
        var is_heard = false;
        for (tokens) |token| {
            switch (token) {
                Token.signal => {
                    if (!loop.isExchangeAsked()) return;
                    owner.asked_to_exchange(owner.context, loop, now_us);
                },
                Token.segment => is_heard = true,
                else => loop.handle(token, owner, now_us),
            }
        }
        // After the sockets, which begin the boots that frames belong to.
        if (is_heard) loop.watch.receive(loop.epoll, Token.segment, now_us);
        loop.serveReads();
        loop.stream.beginLayerWorks();
        if (loop.stream.shards) |shards| if (shards.hasFailed()) return error.SystemCallFailed;
        loop.tftp.policy.tick(now_us);
        if (loop.peers) |*peers| peers.policy.flush(now_us);
        if (now_us >= loop.schedules.next_turn_us) loop.schedules.turn(now_us);
        const is_moment = loop.awaits_downloads and loop.downloadCount() == 0;
        if (now_us < loop.next_tick_us and !is_moment) continue;
        loop.next_tick_us = now_us + tick_interval_us;
        loop.watch.tick(loop.epoll, Token.segment, now_us);
        loop.boots.tick(now_us);
        if (loop.peers) |*peers| peers.tick(now_us);
        loop.routers.tick(now_us);
        for (loop.probers) |*known| if (known.*) |*prober| prober.tick();
        loop.http.tick(now_us);
        loop.stream.policy.tick(now_us);
        owner.tick(owner.context, loop, now_us);
        if (loop.is_exchanged) return;
    }
}

/// Counts TFTP transfers and HTTP answers in progress.
pub fn downloadCount(loop: *const EdgeLoop) u32 {
    return loop.tftp.policy.server.session_count + loop.http.answerCount();
}

/// Returns false if a signal came that ends the edge.
fn isExchangeAsked(loop: *const EdgeLoop) bool {
    var info: linux.signalfd_siginfo = undefined;
    const rc = linux.read(loop.signal_fd, @ptrCast(&info), @sizeOf(linux.signalfd_siginfo));
    _ = sys.check(rc) catch return false;
    return info.signo == @backingInt(linux.SIG.USR2);
}

/// Sums up everything that was ignored since the start.
pub fn ignored(loop: *const EdgeLoop) base.IgnoredCounters {
    var total = loop.boots.ignored;
    if (loop.dhcp) |*dhcp| total.merge(&dhcp.policy.service.ignored);
    total.merge(&loop.tftp.policy.server.ignored);
    total.merge(&loop.stream.policy.server.ignored);
    if (loop.stream.shards) |shards|
        for (shards.shards) |shard| total.merge(&.{ .values = shard.published.read().ignored });
    total.merge(&loop.http.ignored);
    total.merge(&loop.watch.ignored);
    if (loop.peers) |*peers| total.merge(&peers.policy.table.ignored);
    return total;
}

fn addAll(loop: *EdgeLoop) sys.Error!void {
    try loop.epoll.add(loop.signal_fd, .read, Token.signal);
    try loop.epoll.add(loop.wake_fd, .read, Token.wake);
    try loop.epoll.add(loop.records_fd, .read, Token.records);
    for (loop.sockets.links.slice(), 0..) |*link, index| {
        if (link.dhcp) |*socket| try loop.epoll.add(socket.fd, .read, Token.dhcp + index);
        if (link.pxe) |*socket| try loop.epoll.add(socket.fd, .read, Token.pxe + index);
    }
    try loop.epoll.add(loop.sockets.tftp.fd, .read, Token.tftp);
    if (loop.sockets.peer) |*socket| try loop.epoll.add(socket.fd, .read, Token.peer);
    try loop.epoll.add(loop.stream.reads.workers.endedFd(), .read, Token.disk_reads);
    if (loop.stream.shards) |shards| try loop.epoll.add(shards.wake_fd, .read, Token.shards);
    if (loop.stream.layer_workers) |workers|
        try loop.epoll.add(workers.endedFd(), .read, Token.layers);
    if (loop.boots.io.version_opener) |opener|
        try loop.epoll.add(opener.endedFd(), .read, Token.versions);
    if (loop.http.warmer) |warmer|
        try loop.epoll.add(warmer.endedFd(), .read, Token.file_reads);
    try loop.epoll.add(loop.tftp.warmer.endedFd(), .read, Token.tftp_reads);
    for (loop.router_ports) |*port|
        try loop.epoll.add(port.fd, .read, Token.router_discovery);
    for (loop.probers) |*known| if (known.*) |*prober|
        try loop.epoll.add(prober.fd, .read, Token.holders);
    try loop.epoll.add(loop.sockets.listener, .read, Token.listener);
    try loop.watch.addTo(loop.epoll, Token.segment);
}

fn handle(loop: *EdgeLoop, token: u64, owner: Owner, now_us: u64) void {
    switch (token) {
        Token.wake => {
            takeWake(loop.wake_fd);
            owner.woken(owner.context, loop, now_us);
        },
        Token.records => {
            takeWake(loop.records_fd);
            loop.http.endRecords();
        },
        Token.holders => loop.hearHolders(now_us),
        Token.versions => loop.endOpenings(now_us),
        Token.router_discovery => for (loop.router_ports, 0..) |*port, segment| {
            var batch: RouterPort.Batch = .{ .port = port };
            while (batch.next()) |packet|
                loop.routers.receive(now_us, @intCast(segment), packet);
        },
        Token.dhcp...Token.pxe - 1 => {
            // Whoever has an address that was offered has answered before its client accepts it.
            loop.hearHolders(now_us);
            const link = &loop.sockets.links.slice()[@intCast(token - Token.dhcp)];
            const index: u8 = @intCast(token - Token.dhcp);
            loop.dhcp.?.receive(&link.dhcp.?, index, .dhcp, now_us);
        },
        Token.pxe...Token.connections - 1 => {
            const link = &loop.sockets.links.slice()[@intCast(token - Token.pxe)];
            const index: u8 = @intCast(token - Token.pxe);
            loop.dhcp.?.receive(&link.pxe.?, index, .pxe, now_us);
        },
        Token.tftp => loop.tftp.receive(&loop.sockets.tftp, now_us),
        Token.stream => loop.stream.receive(&loop.sockets.stream, now_us),
        Token.disk_reads => loop.stream.reads.takeEnded(),
        Token.shards => loop.stream.drainShards(now_us),
        Token.file_reads => loop.http.endReads(),
        Token.tftp_reads => loop.tftp.endReads(&loop.sockets.tftp, now_us),
        Token.layers => loop.stream.endLayerWorks(now_us),
        Token.peer => loop.peers.?.receive(&loop.sockets.peer.?, now_us),
        Token.listener => loop.http.accept(now_us),
        else => loop.http.handle(token, now_us),
    }
}

fn hearHolders(loop: *EdgeLoop, now_us: u64) void {
    for (loop.probers) |*known| if (known.*) |*prober|
        for (prober.receive().constSlice()) |holder|
            loop.dhcp.?.policy.heardHolder(holder.ip, holder.mac, now_us);
}

/// Threads have opened versions: requests that wait for one are answered.
fn endOpenings(loop: *EdgeLoop, now_us: u64) void {
    const io = loop.boots.io;
    const opener = io.version_opener.?;
    while (opener.takeEnded(&io.versions, &loop.boots.table)) |ended| switch (ended) {
        .version => |version| loop.boots.onVersionOpened(now_us, version.id, version.problem),
        .image => |image| loop.boots.onImageRead(now_us, image.name, image.version),
    };
    loop.stream.policy.onVersionOpened(now_us);
    loop.http.onVersionOpened(now_us);
}

fn takeWake(fd: i32) void {
    var count: u64 = undefined;
    _ = linux.read(fd, @ptrCast(&count), 8);
}

/// Sends the disk bytes that devices wait for, in turns.
fn serveReads(loop: *EdgeLoop) void {
    const reads = &loop.stream.reads;
    reads.serve(&loop.stream, &loop.sockets.stream);
    loop.busy.interest = if (reads.awaits_socket) .read_and_write else .read;
}

/// Returns what is ready, and waits awake (busy polling) where that is worthwhile. Each poll
/// asks for all sockets, so that none has to wait.
fn waitFor(loop: *EdgeLoop, buffer: []u64) sys.Error![]u64 {
    if (loop.stream.reads.hasWork()) return loop.epoll.waitBeside(&loop.busy, buffer, 0);
    const busy_poll = &loop.tftp.busy_poll;
    if (!busy_poll.shouldStart(sys.monotonicUs()))
        return loop.epoll.waitBeside(&loop.busy, buffer, loop.timeoutMs());
    while (true) {
        const tokens = try loop.epoll.waitBeside(&loop.busy, buffer, 0);
        const continues = busy_poll.shouldContinue(sys.monotonicUs(), tokens.len > 0);
        if (tokens.len > 0) return tokens;
        if (!continues) break;
        std.atomic.spinLoopHint();
    }
    return loop.epoll.waitBeside(&loop.busy, buffer, loop.timeoutMs());
}

fn timeoutMs(loop: *const EdgeLoop) i32 {
    const now_us = sys.monotonicUs();
    var deadline_us = loop.next_tick_us;
    if (loop.tftp.policy.server.nextDeadline()) |tftp_us| deadline_us = @min(deadline_us, tftp_us);
    if (loop.peers) |*peers| if (peers.policy.table.nextDeadline()) |peer_us| {
        deadline_us = @min(deadline_us, peer_us);
    };
    deadline_us = @min(deadline_us, loop.schedules.next_turn_us);
    if (deadline_us <= now_us) return 0;
    return @intCast(@min((deadline_us - now_us) / std.time.us_per_ms + 1, 1000));
}

/// Each connection has its own descriptor and one for what it downloads; the rest of the program
/// needs some, too.
fn connectionsFor(file_limit: u64) u16 {
    const for_the_rest = 512;
    const most: u64 = (file_limit -| for_the_rest) / 2;
    return @intCast(std.math.clamp(most, 64, HttpServer.connections_default));
}

/// Makes TERM, INT and USR2 readable; they must not end the process by themselves.
pub fn blockSignals() void {
    const mask = handledSignals();
    _ = linux.sigprocmask(linux.SIG.BLOCK, &mask, null);
}

fn handledSignals() linux.sigset_t {
    var mask = linux.sigemptyset();
    for ([_]linux.SIG{ .TERM, .INT, .USR2 }) |signal| linux.sigaddset(&mask, signal);
    return mask;
}

fn openSignals() sys.Error!i32 {
    const mask = handledSignals();
    const flags = linux.SFD.NONBLOCK | linux.SFD.CLOEXEC;
    return @intCast(try sys.check(linux.signalfd(-1, &mask, flags)));
}

fn openWake() sys.Error!i32 {
    return @intCast(try sys.check(linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC)));
}
