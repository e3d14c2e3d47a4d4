//! Simulates the distribution of one difference to the edges of a site: the production `FetchPlan`,
//! `ServingSession` and records over connections that are cut at any byte, stall, and alter bytes,
//! between edges that lie, are slow, vanish and are killed. It stands in for the threads and files
//! of host/difference. The content of a piece is one number here, so that a run costs little.
//!
//! At first everything may go wrong, then it heals. Every honest edge must end with the whole
//! difference and no wrong byte, no honest edge may be called a liar, and where nothing goes wrong
//! each byte enters the site once. The same seed gives the same run.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").peer_transfer;
const assert = std.debug.assert;
const FetchPlan = core.difference.FetchPlan;
const Pieces = core.difference.Pieces;
const Prng = base.Prng;
const ServingSession = core.difference.ServingSession;

pub const TransferWorld = @This();

const edges_max = 5;
const pieces_max = 24;
/// Everything heals then.
const heal_ms = 40 * std.time.ms_per_min;
/// Every run ends before.
const end_ms = 3 * std.time.ms_per_hour;
/// The control plane orders a failed job again.
const again_ms = 60_000;
const key: wire.Key = @splat(7);
const difference_id: base.Uuid = .fromRandom(@splat(99));

/// Mistakes that a programmer could make around the plan; each must be found.
pub const Mutant = enum {
    /// A piece is kept without comparing it with the list.
    piece_unchecked,
    /// An edge whose connection breaks counts as a liar.
    cut_is_a_lie,
    /// An edge that is killed starts with an empty file.
    file_forgotten,
    /// What an earlier process left is not compared with the list.
    file_unchecked,
    /// A record that does not open is taken for the edge's own.
    forged_is_a_lie,
    /// Every edge asks the control plane.
    all_ask_the_control_plane,
};

pub const Options = struct {
    seed: u64,
    edges: u8 = 4,
    pieces: u8 = 13,
    /// Of a hundred packets.
    loss: u8 = 0,
    /// Connections are cut and stall, bytes are altered, and the control plane fails.
    is_rough: bool = false,
    /// Edges are killed every few seconds.
    is_killing: bool = false,
    liars: u8 = 0,
    /// The first edge has made the version; otherwise only the control plane has it.
    has_origin: bool = false,
    mutant: ?Mutant = null,
};

pub const Violation = enum {
    never_ends,
    wrong_byte,
    honest_edge_named,
    byte_enters_twice,
    stranger_served,
    piece_lost,
};

pub const Result = struct {
    violation: ?Violation = null,
    ended_ms: u64 = 0,
    /// Pieces and lists that the control plane sent to this site, and to how many edges more.
    line_pieces: u32 = 0,
    kills: u32 = 0,
    /// Of `line_pieces`, those that were under way to an edge when it was killed.
    line_lost: u32 = 0,
    cuts: u32 = 0,
    lies: u32 = 0,
    failed_jobs: u32 = 0,
};

/// What an edge's file has of a piece.
const Stored = enum { none, right, torn, wrong };

const Connection = struct { to: u8, epoch: u32, serving: ServingSession, asked: wire.Session };

const Edge = struct {
    id: base.Uuid,
    is_liar: bool = false,
    is_up: bool = true,
    /// Grows with each start.
    epoch: u32 = 0,
    /// When it does the next step, or starts again.
    next_ms: u64 = 0,
    kill_ms: u64 = std.math.maxInt(u64),
    plan: FetchPlan = undefined,
    held: [pieces_max]bool = undefined,
    has_list: bool = false,
    is_whole: bool = false,
    stored: [pieces_max]Stored = @splat(.none),
    has_failed: bool = false,
    connection: ?Connection = null,
};

options: Options,
prng: Prng,
pieces: Pieces,
edges: [edges_max]Edge = undefined,
now_ms: u64 = 0,
result: Result = .{},

pub fn run(options: Options) Result {
    assert(options.edges <= edges_max and options.pieces <= pieces_max);
    assert(options.liars < options.edges);
    var world: TransferWorld = .{
        .options = options,
        .prng = .init(options.seed),
        .pieces = Pieces.of(@as(u64, options.pieces) * Pieces.piece_size - 5).?,
    };
    for (world.edges[0..options.edges], 0..) |*edge, index| {
        edge.* = .{
            .id = .fromRandom(@splat(@intCast(index + 1))),
            // The last ones: the first is to be whole.
            .is_liar = index >= options.edges - options.liars,
        };
        world.begin(edge);
        if (options.is_killing) edge.kill_ms = world.prng.between(1_000, 10_000);
    }
    if (options.has_origin) {
        const origin = &world.edges[0];
        origin.has_list = true;
        origin.is_whole = true;
        @memset(origin.stored[0..options.pieces], .right);
    }
    while (!world.isOver()) world.turn();
    world.check();
    world.result.ended_ms = world.now_ms;
    return world.result;
}

fn isOver(world: *TransferWorld) bool {
    if (world.result.violation != null) return true;
    for (world.honest()) |*edge| if (!edge.is_whole) return false;
    return true;
}

fn honest(world: *TransferWorld) []Edge {
    return world.edges[0 .. world.options.edges - world.options.liars];
}

fn indexOf(world: *const TransferWorld, edge: *const Edge) u8 {
    return @intCast((@intFromPtr(edge) - @intFromPtr(&world.edges)) / @sizeOf(Edge));
}

/// A process of the edge starts its job: what its file has is compared with the list.
fn begin(world: *TransferWorld, edge: *Edge) void {
    const index = world.indexOf(edge);
    // As the control plane orders it: one edge gets it from there, and whoever has failed may.
    const is_first = !world.options.has_origin and
        (index == 0 or world.has(.all_ask_the_control_plane));
    edge.plan = .init(.{
        .pieces = world.pieces,
        .held = edge.held[0..world.options.pieces],
        .peer_count = if (is_first and !edge.has_failed) 0 else world.options.edges - 1,
        .from_control_plane = edge.has_failed or is_first,
    }, world.now_ms);
    if (world.has(.file_forgotten)) edge.stored = @splat(.none);
    if (!edge.has_list) return;
    edge.plan.onListHeld();
    for (edge.stored[0..world.options.pieces], 0..) |stored, piece| {
        const counts = stored == .right or (world.has(.file_unchecked) and stored == .torn);
        if (counts) edge.plan.onHeld(@intCast(piece));
    }
}

fn has(world: *const TransferWorld, mutant: Mutant) bool {
    return world.options.mutant == mutant;
}

fn hasHealed(world: *const TransferWorld) bool {
    return world.now_ms >= heal_ms;
}

fn chance(world: *TransferWorld, of: u64, most: u64) bool {
    return world.options.is_rough and !world.hasHealed() and world.prng.chance(of, most);
}

/// The next edge does its next step, is killed, or starts again.
fn turn(world: *TransferWorld) void {
    var next: ?*Edge = null;
    for (world.edges[0..world.options.edges]) |*edge| {
        const at_ms = if (edge.is_up) @min(edge.next_ms, edge.kill_ms) else edge.next_ms;
        const best_ms = if (next) |other|
            (if (other.is_up) @min(other.next_ms, other.kill_ms) else other.next_ms)
        else
            std.math.maxInt(u64);
        if (at_ms < best_ms) next = edge;
    }
    const edge = next orelse {
        world.result.violation = .never_ends;
        return;
    };
    const at_ms = if (edge.is_up) @min(edge.next_ms, edge.kill_ms) else edge.next_ms;
    world.now_ms = @max(world.now_ms, at_ms);
    if (world.now_ms > end_ms) {
        world.result.violation = .never_ends;
        return;
    }
    if (!edge.is_up) return world.start(edge);
    if (edge.kill_ms <= world.now_ms) return world.kill(edge);
    if (edge.is_whole) {
        edge.next_ms = std.math.maxInt(u64);
        return;
    }
    world.step(edge);
}

fn kill(world: *TransferWorld, edge: *Edge) void {
    edge.kill_ms = std.math.maxInt(u64);
    if (world.hasHealed()) return;
    world.result.kills += 1;
    edge.is_up = false;
    edge.connection = null;
    edge.next_ms = world.now_ms + world.prng.between(200, 3_000);
}

fn start(world: *TransferWorld, edge: *Edge) void {
    edge.is_up = true;
    edge.epoch += 1;
    edge.next_ms = world.now_ms;
    if (world.options.is_killing) edge.kill_ms = world.now_ms + world.prng.between(2_000, 8_000);
    if (!edge.is_whole) world.begin(edge);
}

fn step(world: *TransferWorld, edge: *Edge) void {
    const asked = edge.plan.next(world.now_ms);
    switch (asked) {
        .complete => edge.is_whole = true,
        .failed => {
            world.result.failed_jobs += 1;
            edge.has_failed = true;
            world.begin(edge);
            edge.next_ms = world.now_ms + again_ms;
        },
        .wait_until_ms => |until_ms| {
            assert(until_ms > world.now_ms);
            edge.next_ms = until_ms;
        },
        .list => |source| world.ask(edge, asked, source, null),
        .piece => |piece| world.ask(edge, asked, piece.source, piece.index),
    }
}

/// How a request ends, and after how long.
const Answer = struct {
    outcome: FetchPlan.Outcome,
    took_ms: u64,
    /// What came differs from what was asked for.
    is_wrong: bool = false,
};

fn ask(
    world: *TransferWorld,
    edge: *Edge,
    asked: FetchPlan.Step,
    source: u8,
    piece: ?u32,
) void {
    var answer = if (source == FetchPlan.control_plane)
        world.askControlPlane(piece)
    else
        world.askEdge(edge, world.peerOf(edge, source), piece);
    const ends_ms = world.now_ms + answer.took_ms;
    if (edge.kill_ms <= ends_ms) {
        // Killed in the middle: the file may have a part of it.
        if (piece) |index| if (answer.outcome == .taken and world.prng.chance(1, 2)) {
            edge.stored[index] = .torn;
        };
        if (source == FetchPlan.control_plane and piece != null and answer.outcome == .taken)
            world.result.line_lost += 1;
        edge.next_ms = edge.kill_ms;
        return;
    }
    edge.next_ms = ends_ms;
    if (answer.outcome == .taken and answer.is_wrong and !world.has(.piece_unchecked))
        answer.outcome = .wrong;
    if (answer.outcome == .taken) if (piece) |index| {
        edge.stored[index] = if (answer.is_wrong) .wrong else .right;
    } else {
        edge.has_list = true;
    };
    edge.plan.onOutcome(asked, answer.outcome, ends_ms);
}

/// The sources of an edge are the others, in their order.
fn peerOf(world: *TransferWorld, edge: *const Edge, source: u8) *Edge {
    const own = world.indexOf(edge);
    return &world.edges[if (source < own) source else source + 1];
}

/// 100 Mb/s, and what is lost is sent again.
fn sendMs(world: *TransferWorld, size: u64) u64 {
    var took_ms = 1 + size / 12_500;
    if (world.options.loss == 0 or world.hasHealed()) return took_ms;
    // Of each hundred packets so many wait for a retransmission, some of them repeatedly.
    const packets = size / 1448 + 1;
    var lost = packets * world.options.loss / 100;
    if (packets < 100) lost = @intFromBool(world.prng.chance(world.options.loss, 100));
    var timeout_ms: u64 = 200;
    while (lost > 0) {
        // Losses of one window are repaired together.
        took_ms += timeout_ms;
        const again = lost * world.options.loss / 100;
        lost = if (lost > 20) lost - 20 else again;
        if (lost <= 20) timeout_ms = @min(timeout_ms * 2, 6_400);
    }
    return took_ms;
}

fn sizeOf(world: *const TransferWorld, piece: ?u32) u64 {
    return if (piece) |index| world.pieces.sizeOf(index) else world.pieces.listSize();
}

fn askControlPlane(world: *TransferWorld, piece: ?u32) Answer {
    const took_ms = world.sendMs(world.sizeOf(piece));
    if (world.chance(1, 8)) return .{ .outcome = .unreachable_source, .took_ms = took_ms / 2 };
    if (world.chance(1, 8)) return .{
        .outcome = .{ .later = @intCast(world.prng.below(20_000)) },
        .took_ms = 5,
    };
    if (piece != null) world.result.line_pieces += 1;
    return .{ .outcome = .taken, .took_ms = took_ms };
}

fn askEdge(world: *TransferWorld, edge: *Edge, to: *Edge, piece: ?u32) Answer {
    const broken: Answer = .{ .outcome = .unreachable_source, .took_ms = 5_000 };
    var took_ms: u64 = 1;
    const connected = world.connect(edge, to) catch |err| {
        edge.connection = null;
        return .{
            .outcome = if (err == error.Refused and world.has(.cut_is_a_lie))
                .wrong
            else
                .unreachable_source,
            .took_ms = if (err == error.Refused) 1 else broken.took_ms,
        };
    };
    const request = world.exchange(connected, piece) catch {
        edge.connection = null;
        return .{
            .outcome = if (world.has(.forged_is_a_lie)) .wrong else .unreachable_source,
            .took_ms = world.prng.between(1, 5_000),
        };
    };
    took_ms += world.sendMs(64);
    const answer = world.answerOf(to, request);
    if (answer.outcome == .taken) took_ms += world.sendMs(world.sizeOf(piece));
    // The edge that answers may vanish in the middle, or the connection.
    const is_cut = to.kill_ms <= world.now_ms + took_ms or world.chance(1, 10);
    if (is_cut) {
        world.result.cuts += 1;
        edge.connection = null;
        return .{
            .outcome = if (world.has(.cut_is_a_lie)) .wrong else .unreachable_source,
            .took_ms = world.prng.below(took_ms + 1),
        };
    }
    connected.serving.onAnswered(world.now_ms + took_ms);
    return .{ .outcome = answer.outcome, .took_ms = took_ms, .is_wrong = answer.is_wrong };
}

/// What the edge that answers has, by the state of its files.
fn answerOf(world: *TransferWorld, to: *const Edge, request: wire.Request) Answer {
    if (to.is_liar and world.prng.chance(1, 2)) {
        world.result.lies += 1;
        return .{ .outcome = .taken, .took_ms = 0, .is_wrong = true };
    }
    const outcome: FetchPlan.Outcome = switch (request) {
        .list => if (to.has_list) .taken else .unknown,
        .piece => |asked| if (!to.has_list)
            .unknown
        else if (to.stored[asked.index] == .right or to.stored[asked.index] == .wrong)
            .taken
        else
            .absent,
        .content, .copies, .copy_list, .copy_area => unreachable,
    };
    const is_wrong = if (request == .piece)
        to.stored[request.piece.index] == .wrong
    else
        false;
    return .{ .outcome = outcome, .took_ms = 0, .is_wrong = is_wrong };
}

const ConnectError = error{ Refused, Broken };

/// Greetings over a network that cuts and alters; kept while both processes live.
fn connect(world: *TransferWorld, edge: *Edge, to: *Edge) ConnectError!*Connection {
    if (!to.is_up) return error.Refused;
    const number = world.indexOf(to);
    if (edge.connection) |*kept| {
        const is_idle = world.now_ms >= kept.serving.deadline_ms;
        if (kept.to == number and kept.epoch == to.epoch and !is_idle) return kept;
    }
    var peers: ServingSession.Peers = .empty;
    peers.appendAssumeCapacity(edge.id);
    var serving: ServingSession = .init(.{
        .key = key,
        .own_id = to.id,
        .peers = peers,
        .nonce = world.nonce(),
    }, world.now_ms);
    var hello = wire.emitGreeting(
        &.{ .kind = .hello, .from = edge.id, .to = to.id, .nonce = world.nonce() },
        &key,
        null,
    );
    const sent = hello;
    const is_altered = world.alter(&hello);
    const welcome = switch (world.feed(&serving, &hello)) {
        .welcome => |bytes| bytes,
        .nothing, .close => return error.Broken,
        .request => unreachable,
    };
    if (is_altered) world.result.violation = .stranger_served;
    var got = welcome;
    _ = world.alter(&got);
    if (!wire.isAuthentic(&got, &key, &sent)) return error.Broken;
    edge.connection = .{
        .to = number,
        .epoch = to.epoch,
        .serving = serving,
        .asked = .init(&key, &sent, &got),
    };
    return &edge.connection.?;
}

/// Returns the request as it arrives.
fn exchange(
    world: *TransferWorld,
    connection: *Connection,
    piece: ?u32,
) error{Broken}!wire.Request {
    const request: wire.Request = if (piece) |index|
        .{ .piece = .{ .difference = difference_id, .index = index } }
    else
        .{ .list = difference_id };
    var bytes: wire.RequestBytes = undefined;
    var buffer: [wire.record_size_max]u8 = undefined;
    const record = connection.asked.asking.seal(wire.emitRequest(request, &bytes), &buffer);
    const is_altered = world.alter(record);
    const event = world.feed(&connection.serving, record);
    if (event != .request) return error.Broken;
    if (is_altered or !std.meta.eql(event.request, request))
        world.result.violation = .stranger_served;
    return event.request;
}

/// Hands bytes over in parts of any size; a cut ends them at any byte.
fn feed(world: *TransferWorld, serving: *ServingSession, bytes: []const u8) ServingSession.Event {
    const cut: usize =
        if (world.chance(1, 20)) @intCast(world.prng.below(bytes.len)) else bytes.len;
    var rest = bytes[0..cut];
    while (rest.len > 0) {
        const place = serving.wanted();
        if (place.len == 0) return .close;
        const most = @min(place.len, rest.len);
        const size: usize = @intCast(world.prng.between(1, most));
        @memcpy(place[0..size], rest[0..size]);
        const event = serving.received(size, world.now_ms);
        if (event != .nothing) return event;
        rest = rest[size..];
    }
    world.result.cuts += @intFromBool(cut < bytes.len);
    return .nothing;
}

fn alter(world: *TransferWorld, bytes: []u8) bool {
    if (!world.chance(1, 30)) return false;
    const at: usize = @intCast(world.prng.below(bytes.len));
    bytes[at] ^= @as(u8, 1) << @intCast(world.prng.below(8));
    return true;
}

fn nonce(world: *TransferWorld) [wire.nonce_size]u8 {
    var bytes: [wire.nonce_size]u8 = undefined;
    world.prng.fill(&bytes);
    return bytes;
}

fn check(world: *TransferWorld) void {
    if (world.result.violation != null) return;
    for (world.honest()) |*edge| {
        for (edge.stored[0..world.options.pieces]) |stored| switch (stored) {
            .right => {},
            .none => world.result.violation = .piece_lost,
            .torn, .wrong => world.result.violation = .wrong_byte,
        };
        for (edge.plan.sources[0..edge.plan.peer_count], 0..) |*source, index| {
            const fault = source.fault orelse continue;
            const is_named = fault == .wrong_list or fault == .wrong_piece;
            if (is_named and !world.peerOf(edge, @intCast(index)).is_liar)
                world.result.violation = .honest_edge_named;
        }
    }
    const options = &world.options;
    const is_calm = options.loss == 0 and !options.is_rough and !options.is_killing and
        options.liars == 0;
    const expected: u32 = if (options.has_origin) 0 else options.pieces;
    if (is_calm and world.result.line_pieces != expected)
        world.result.violation = .byte_enters_twice;
    // A killed edge gets again what was under way to it, and not what its file has.
    const may_repeat = options.is_rough or options.liars > 0;
    if (!may_repeat and world.result.failed_jobs == 0 and
        world.result.line_pieces > expected + world.result.line_lost)
        world.result.violation = .byte_enters_twice;
}

test {
    _ = @import("world_test.zig");
}
