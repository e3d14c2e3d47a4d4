//! Serves lists and pieces of differences, content of versions, and copies of write layers to the
//! other edges of the site over TCP at the peer port (packages/proto/PEERS.md, "Transfers"). Every
//! connection is a `ServingSession`; this thread polls them all, and nothing else waits for it.
//! Devices come first: it runs at the lowest priority of processor and disk, and sends at a limited
//! rate, which is lower while devices boot. It listens only while the state names other edges, and
//! keeps connections of their addresses alone.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").peer_transfer;
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const DifferenceFiles = @import("difference_files.zig");
const offered_copies = @import("../layer_copies/offered_copies.zig");
const PeerSource = @import("peer_source.zig");
const Repairer = @import("../repair/repairer.zig");
const SitePeers = @import("site_peers.zig");
const store = @import("store");
const version_content = @import("version_content.zig");
const assert = std.debug.assert;
const linux = std.os.linux;
const Pieces = core.difference.Pieces;
const RateLimit = core.difference.RateLimit;
const ServingSession = core.difference.ServingSession;

pub const PeerServer = @This();

/// To all edges together.
const bytes_per_s = 96 << 20;
const bytes_per_s_while_booting = 12 << 20;
const connections_max = ServingSession.connections_max;
const turn_ms = 1_000;
const listen_retry_ms = 5_000;
const backlog = 16;
const lowest_nice = 19;
const idle_class = 3 << 13;

gpa: std.mem.Allocator,
peers: *SitePeers,
store_path: []const u8,
address: base.Endpoint,
/// Gets the damage that other edges meet here. Null: nothing is repaired.
repairer: ?*Repairer,
site: ?core.site.Edges = null,
generation: u64 = 0,
listener: ?i32 = null,
next_listen_ms: u64 = 0,
is_failure_logged: bool = false,
connections: [connections_max]?*Connection = @splat(null),
rate: RateLimit = .{},
/// Connections take turns.
first: u8 = 0,
list: []u8,
piece: *[Pieces.piece_size]u8,

const Connection = struct {
    fd: i32,
    address: base.Ip4,
    session: ServingSession,
    /// What is sent of the answer.
    answer: ?Answer = null,
    output: [wire.record_size_max]u8 = undefined,
    output_size: u16 = 0,
    output_sent: u16 = 0,
    /// Content of a version, which was compared with its hash, or the names of copies.
    content: version_content.Buffer = undefined,

    /// Of a file, of `owned`, or of `content`.
    const Answer = struct { fd: ?i32 = null, owned: ?[]u8 = null, offset: u64 = 0, left: u32 };

    fn hasOutput(connection: *const Connection) bool {
        return connection.output_sent < connection.output_size;
    }
};

pub const Options = struct {
    peers: *SitePeers,
    store_path: []const u8,
    address: base.Endpoint,
    repairer: ?*Repairer = null,
};

pub fn create(gpa: std.mem.Allocator, options: Options) error{OutOfMemory}!*PeerServer {
    const server = try gpa.create(PeerServer);
    errdefer gpa.destroy(server);
    const list = try gpa.alloc(u8, Pieces.list_size_max);
    errdefer gpa.free(list);
    server.* = .{
        .gpa = gpa,
        .peers = options.peers,
        .store_path = options.store_path,
        .address = options.address,
        .repairer = options.repairer,
        .list = list,
        .piece = try gpa.create([Pieces.piece_size]u8),
    };
    return server;
}

/// Runs until the process ends.
pub fn start(server: *PeerServer) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{server});
    thread.detach();
}

fn run(server: *PeerServer) void {
    // Of this thread alone.
    _ = linux.syscall3(.setpriority, 0, 0, lowest_nice);
    _ = linux.syscall3(.ioprio_set, 1, 0, idle_class);
    while (true) server.turn();
}

/// One round: what has changed, what came, what can be sent. Waits for at most a second.
pub fn turn(server: *PeerServer) void {
    server.takeSite();
    server.listen(nowMs());
    const booting = server.peers.booting.load(.monotonic);
    server.rate.bytes_per_s = if (booting > 0) bytes_per_s_while_booting else bytes_per_s;
    server.wait();
    const now_ms = nowMs();
    server.first = (server.first + 1) % connections_max;
    for (0..connections_max) |step| {
        const place = &server.connections[(server.first + step) % connections_max];
        const connection = place.* orelse continue;
        const is_kept = now_ms < connection.session.deadline_ms and
            server.serve(connection, now_ms);
        if (!is_kept) server.end(place);
    }
    server.accept(now_ms);
}

/// Ends all connections and stops listening.
pub fn stop(server: *PeerServer) void {
    for (&server.connections) |*place| server.end(place);
    if (server.listener) |fd| sys.close(fd);
    server.listener = null;
}

pub fn destroy(server: *PeerServer) void {
    server.stop();
    server.gpa.free(server.list);
    server.gpa.destroy(server.piece);
    server.gpa.destroy(server);
}

/// Connections that an earlier state allowed end: an edge may be revoked, and the key replaced.
fn takeSite(server: *PeerServer) void {
    const current = server.peers.after(server.generation) orelse return;
    server.generation = current.generation;
    const is_same = if (server.site) |*old| if (current.site) |*new|
        isSame(old, new)
    else
        false else current.site == null;
    server.site = current.site;
    if (is_same) return;
    server.stop();
    server.next_listen_ms = 0;
}

fn isSame(old: *const core.site.Edges, new: *const core.site.Edges) bool {
    if (!std.crypto.timing_safe.eql(wire.Key, old.transfer_key, new.transfer_key)) return false;
    if (!old.own_id.eql(new.own_id) or old.edges.count != new.edges.count) return false;
    for (old.edges.constSlice(), new.edges.constSlice()) |*before, *now|
        if (!before.id.eql(now.id) or !std.meta.eql(before.endpoint, now.endpoint)) return false;
    return true;
}

fn listen(server: *PeerServer, now_ms: u64) void {
    if (server.site == null or server.listener != null) return;
    if (now_ms < server.next_listen_ms) return;
    server.next_listen_ms = now_ms + listen_retry_ms;
    server.listener = open(server.address) catch {
        // The process that this one has just replaced may still have it.
        if (!server.is_failure_logged) log.info(
            "TCP {f} cannot be opened: other edges of the site get no differences from this one " ++
                "until it can.",
            .{server.address},
        );
        server.is_failure_logged = true;
        return;
    };
    server.is_failure_logged = false;
}

fn open(address: base.Endpoint) sys.Error!i32 {
    const kind = linux.SOCK.STREAM | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
    const fd: i32 = @intCast(try sys.check(linux.socket(linux.AF.INET, kind, 0)));
    errdefer sys.close(fd);
    const one: u32 = 1;
    const rc = linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.REUSEADDR,
        std.mem.asBytes(&one),
        @sizeOf(u32),
    );
    _ = try sys.check(rc);
    const name = PeerSource.addressOf(address);
    _ = try sys.check(linux.bind(fd, @ptrCast(&name), @sizeOf(linux.sockaddr.in)));
    _ = try sys.check(linux.listen(fd, backlog));
    return fd;
}

fn wait(server: *PeerServer) void {
    var polled: [connections_max + 1]linux.pollfd =
        @splat(.{ .fd = -1, .events = 0, .revents = 0 });
    polled[connections_max] = .{
        .fd = server.listener orelse -1,
        .events = linux.POLL.IN,
        .revents = 0,
    };
    const now_us = sys.monotonicUs();
    var limit_ms: u64 = turn_ms;
    for (server.connections, polled[0..connections_max]) |place, *one| {
        const connection = place orelse continue;
        limit_ms = @min(limit_ms, connection.session.deadline_ms -| nowMs() + 1);
        if (!connection.hasOutput() and connection.answer != null) {
            limit_ms = @min(limit_ms, (server.rate.waitUs(now_us) + 999) / 1000);
            continue;
        }
        one.fd = connection.fd;
        one.events = if (connection.hasOutput()) linux.POLL.OUT else linux.POLL.IN;
    }
    _ = linux.poll(&polled, polled.len, @intCast(limit_ms));
}

fn accept(server: *PeerServer, now_ms: u64) void {
    const listener = server.listener orelse return;
    for (0..backlog) |_| {
        var from: linux.sockaddr.in = undefined;
        var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
        const flags = linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const rc = linux.accept4(listener, @ptrCast(&from), &size, flags);
        const fd: i32 = @intCast(sys.check(rc) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return,
        });
        if (!server.keep(fd, .{ .bytes = @bitCast(from.addr) }, now_ms)) sys.close(fd);
    }
}

/// A stranger's connection is closed before a byte of it is read.
fn keep(server: *PeerServer, fd: i32, address: base.Ip4, now_ms: u64) bool {
    const site = if (server.site) |*site| site else return false;
    var peers: ServingSession.Peers = .empty;
    for (site.edges.constSlice(), 0..) |*edge, index| {
        const endpoint = edge.endpoint orelse continue;
        if (index == site.own_index or !endpoint.ip.eql(address)) continue;
        peers.append(edge.id) catch break;
    }
    if (peers.count == 0) return false;
    var others: [connections_max]base.Ip4 = undefined;
    var count: usize = 0;
    var free: ?*?*Connection = null;
    for (&server.connections) |*place| if (place.*) |other| {
        others[count] = other.address;
        count += 1;
    } else {
        free = place;
    };
    if (!ServingSession.mayAccept(others[0..count], address)) return false;
    var nonce: [wire.nonce_size]u8 = undefined;
    sys.random(&nonce);
    const connection = server.gpa.create(Connection) catch return false;
    connection.* = .{ .fd = fd, .address = address, .session = .init(.{
        .key = site.transfer_key,
        .own_id = site.own_id,
        .peers = peers,
        .nonce = nonce,
    }, now_ms) };
    assert(free.?.* == null);
    free.?.* = connection;
    return true;
}

fn end(server: *PeerServer, place: *?*Connection) void {
    const connection = place.* orelse return;
    server.endAnswer(connection);
    sys.close(connection.fd);
    server.gpa.destroy(connection);
    place.* = null;
}

fn endAnswer(server: *PeerServer, connection: *Connection) void {
    const begun = connection.answer orelse return;
    if (begun.fd) |fd| sys.close(fd);
    if (begun.owned) |bytes| server.gpa.free(bytes);
    connection.answer = null;
}

/// Returns false at the end of the connection.
fn serve(server: *PeerServer, connection: *Connection, now_ms: u64) bool {
    if (connection.hasOutput()) return send(connection, now_ms);
    if (connection.answer != null) return server.sendPart(connection, now_ms);
    const place = connection.session.wanted();
    const count = sys.check(
        linux.read(connection.fd, place.ptr, place.len),
    ) catch |err| return err != error.SystemCallFailed;
    if (count == 0) return false;
    switch (connection.session.received(count, now_ms)) {
        .nothing => return true,
        .close => return false,
        .welcome => |bytes| {
            @memcpy(connection.output[0..bytes.len], &bytes);
            connection.output_size = bytes.len;
            connection.output_sent = 0;
            return send(connection, now_ms);
        },
        .request => |request| return server.answer(connection, request, now_ms),
    }
}

fn send(connection: *Connection, now_ms: u64) bool {
    const rest = connection.output[connection.output_sent..connection.output_size];
    const rc = linux.sendto(connection.fd, rest.ptr, rest.len, linux.MSG.NOSIGNAL, null, 0);
    const count = sys.check(rc) catch |err| return err != error.SystemCallFailed;
    connection.output_sent += @intCast(count);
    if (connection.hasOutput() or connection.session.stage != .busy) return true;
    if (connection.answer == null)
        connection.session.onAnswered(now_ms)
    else
        connection.session.onRecordSent(now_ms);
    return true;
}

fn sendText(connection: *Connection, text: []const u8, now_ms: u64) bool {
    const record = connection.session.seal(text, &connection.output);
    connection.output_size = @intCast(record.len);
    connection.output_sent = 0;
    return send(connection, now_ms);
}

fn sendPart(server: *PeerServer, connection: *Connection, now_ms: u64) bool {
    const now_us = sys.monotonicUs();
    // It is not the asking edge that is slow.
    connection.session.onRecordSent(now_ms);
    if (server.rate.waitUs(now_us) > 0) return true;
    const rest = &connection.answer.?;
    var text: [1 + wire.content_size_max]u8 = undefined;
    text[0] = wire.part_mark;
    const size = @min(rest.left, wire.content_size_max);
    const part = text[1..][0..size];
    if (rest.fd) |fd| {
        const count = sys.readAt(fd, part, rest.offset) catch return false;
        if (count != size) return false;
    } else {
        const bytes = rest.owned orelse &connection.content;
        @memcpy(part, bytes[@intCast(rest.offset)..][0..size]);
    }
    server.rate.spend(size, now_us);
    server.peers.count(.to_edge, size);
    rest.offset += size;
    rest.left -= size;
    if (rest.left == 0) server.endAnswer(connection);
    return sendText(connection, text[0 .. 1 + size], now_ms);
}

fn answer(
    server: *PeerServer,
    connection: *Connection,
    request: wire.Request,
    now_ms: u64,
) bool {
    assert(connection.answer == null);
    const found = server.find(request, connection) catch |err| {
        const why: wire.Absence = switch (err) {
            error.Unknown => .unknown,
            error.Absent, error.Differs => .absent,
            error.Damaged => .damaged,
        };
        // What was read for nothing counts like what is sent.
        const was_read = err == error.Differs or err == error.Damaged;
        if (was_read) server.rate.spend(Pieces.piece_size, sys.monotonicUs());
        return sendText(connection, &wire.emitAbsence(why), now_ms);
    };
    connection.answer = found;
    return sendText(connection, &wire.emitContent(found.left), now_ms);
}

fn find(
    server: *PeerServer,
    request: wire.Request,
    connection: *Connection,
) error{ Unknown, Absent, Differs, Damaged }!Connection.Answer {
    if (request == .content) {
        const asked = &request.content;
        const size = version_content.read(
            server.gpa,
            server.store_path,
            asked,
            &connection.content,
        ) catch |err| {
            if (err == error.Damaged) if (server.repairer) |repairer|
                repairer.report(asked.version, asked.index);
            return err;
        };
        return .{ .left = size };
    }
    if (try server.findCopy(request, connection)) |found| return found;
    var files = DifferenceFiles.open(server.store_path) catch return error.Unknown;
    defer files.close();
    switch (request) {
        .list => |id| {
            const list = files.readList(id, server.list) orelse return error.Unknown;
            const fd = files.openList(id) catch return error.Unknown;
            return .{ .fd = fd, .offset = 0, .left = @intCast(list.len) };
        },
        .content, .copies, .copy_list, .copy_area => unreachable,
        .piece => |piece| {
            const list = files.readList(piece.difference, server.list) orelse return error.Unknown;
            if (piece.index >= list.len / Pieces.hash_size) return error.Unknown;
            var is_whole = true;
            const fd = files.openWhole(piece.difference) catch blk: {
                is_whole = false;
                break :blk files.openPart(piece.difference) catch return error.Unknown;
            };
            errdefer sys.close(fd);
            const offset = @as(u64, piece.index) * Pieces.piece_size;
            if (!is_whole and offset >= DifferenceFiles.sizeOf(fd)) return error.Absent;
            const bytes = DifferenceFiles.readUnsized(fd, list, piece.index, server.piece) orelse
                return if (is_whole) error.Damaged else error.Differs;
            return .{
                .fd = fd,
                .offset = offset,
                .left = @intCast(bytes.len),
            };
        },
    }
}

/// Null: something else is asked for.
fn findCopy(
    server: *PeerServer,
    request: wire.Request,
    connection: *Connection,
) error{ Unknown, Absent, Differs, Damaged }!?Connection.Answer {
    const asking: offered_copies.Asking = .{
        .edge = connection.session.asking,
        .site = if (server.site) |*site| site else return error.Absent,
    };
    return switch (request) {
        .list, .piece, .content => null,
        .copies => |above| if (offered_copies.page(
            server.store_path,
            &asking,
            above,
            connection.content[0..@sizeOf(offered_copies.Page)],
        )) |size| .{ .left = size } else |err| absenceOf(err),
        .copy_list => |layer| if (offered_copies.list(server.store_path, &asking, layer)) |body| .{
            .fd = body.fd,
            .offset = store.AreaList.header_size,
            .left = body.size,
        } else |err| absenceOf(err),
        .copy_area => |asked| if (offered_copies.area(
            server.gpa,
            server.store_path,
            &asking,
            asked.layer,
            asked.area,
        )) |bytes| .{ .owned = bytes, .left = @intCast(bytes.len) } else |err| absenceOf(err),
    };
}

fn absenceOf(problem: offered_copies.Error) error{ Unknown, Absent, Damaged } {
    return switch (problem) {
        error.Unknown => error.Unknown,
        error.Absent, error.OutOfMemory => error.Absent,
        error.Damaged => error.Damaged,
    };
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

test {
    _ = @import("peer_server_test.zig");
}
