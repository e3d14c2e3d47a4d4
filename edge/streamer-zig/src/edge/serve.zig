//! `bootfarm-edge serve`: opens everything that the edge needs or prints what it cannot get, then
//! runs until a signal ends it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const host = @import("host");
const options_module = @import("options.zig");
const start = @import("start.zig");
const Edge = @import("edge.zig");
const Terminal = @import("terminal.zig").Terminal;

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    // Before any thread exists: threads inherit the mask.
    host.blockSignals();
    // Later, a newer program may lie at this path.
    var path_buffer: [std.fs.max_path_bytes:0]u8 = undefined;
    const program = host.exchange.Program.find(init.environ_map, &path_buffer) catch
        return terminal.fail("The path of this program cannot be read from /proc.", .{});
    var complaint: options_module.Complaint = .{};
    const code = serve(init, &program, arguments, terminal, &complaint) catch |err| switch (err) {
        error.Wrong => return terminal.fail("{s}", .{complaint.text()}),
        error.OutOfMemory => return terminal.fail("There is not enough memory.", .{}),
    };
    host.log.finish();
    // The uplink's threads may wait half a minute for answers; everything that counts is on disk.
    std.process.exit(code);
}

fn serve(
    init: std.process.Init,
    program: *const host.exchange.Program,
    arguments: []const [:0]const u8,
    terminal: *Terminal,
    complaint: *options_module.Complaint,
) start.Error!u8 {
    const options = try options_module.parseServe(init.arena.allocator(), arguments, complaint);
    var edge: Edge = .{
        .init = init,
        .terminal = terminal,
        .options = options,
        .disk_watch = .{ .io = init.io },
        .manager = .open(init.environ_map.get("NOTIFY_SOCKET")),
        .program = program.*,
    };
    switch (beginProgram(&edge)) {
        .itself => {},
        .updated => return continueAs(&edge, .updated, null),
        .left => return leave(&edge, .ended, null),
    }
    start.prepare(&edge, complaint) catch |err| {
        if (edge.probation == null) return err;
        host.log.info("The new program cannot start: {s}", .{complaint.text()});
        if (edge.program.kind != .updated) edge.former.?.reject(host.exchange.running_program);
        return leave(&edge, .cannot_start, null);
    };
    // The first start has made the directory.
    if (edge.former == null) if (edge.data) |*data| {
        edge.former = .{ .io = init.io, .dir = data.dir };
    };
    if (edge.probation) |*probation| {
        probation.began_us = host.sys.monotonicUs();
        if (edge.options.probation_s) |seconds|
            probation.serving_us_min = @as(u64, seconds) * std.time.us_per_s;
    }
    const code = edge.run();
    if (!edge.loop.is_exchanged) return code;
    const was_accepted = edge.exchange_order != null or edge.isAccepted() or
        if (edge.probation) |*probation| probation.was_accepted else false;
    const sockets = &edge.loop.sockets;
    if (edge.is_left) return leave(&edge, edge.left_cause, sockets);
    takeOver(&edge, was_accepted) catch {
        // Without its record the next program would have no probation: this one starts again.
        edge.former.?.endProbation();
        return continueAs(&edge, if (edge.program.kind == .updated) .updated else .former, sockets);
    };
    return continueAs(&edge, if (edge.exchange_order == null) .installed else .updated, sockets);
}

/// Puts the next program on probation.
fn takeOver(edge: *Edge, was_accepted: bool) !void {
    try edge.former.?.put(&.{ .was_accepted = was_accepted });
    const order = if (edge.exchange_order) |*order| order else return;
    try edge.slots().install(&edge.recordOf(order, .probation, null));
}

/// Which program is to run: this one, the release in its place, or the one before it.
fn beginProgram(edge: *Edge) enum { itself, updated, left } {
    const io = edge.init.io;
    const arena = edge.init.arena.allocator();
    const dir = std.Io.Dir.cwd().openDir(io, edge.options.data orelse return .itself, .{}) catch
        return .itself;
    edge.former = .{ .io = io, .dir = dir };
    if (edge.program.kind == .installed and edge.slots().choose(arena, base.version) == .updated)
        return .updated;
    edge.record = edge.slots().record(arena);
    if (edge.program.kind == .former) return .itself;
    switch (edge.former.?.begin(host.exchange.running_program)) {
        .plain => {},
        .probation => |record| edge.probation =
            .{ .was_accepted = record.was_accepted, .began_us = 0 },
        .failed => return .left,
    }
    return .itself;
}

/// Gives this program up for the one before it.
fn leave(
    edge: *Edge,
    cause: core.update.Record.Cause,
    sockets: ?*const host.EdgeSockets,
) start.Error!u8 {
    if (edge.program.kind == .updated) if (edge.record) |*record| {
        edge.slots().leave(record, cause);
        return continueAs(edge, .updated, sockets);
    };
    return continueAs(edge, .former, sockets);
}

/// Continues as another program.
fn continueAs(
    edge: *Edge,
    kind: host.exchange.Program.Kind,
    sockets: ?*const host.EdgeSockets,
) start.Error!u8 {
    const terminal = edge.terminal;
    var buffer: [std.fs.max_path_bytes:0]u8 = undefined;
    const name = switch (kind) {
        .installed => "",
        .former => host.FormerProgram.program_name,
        .updated => host.ReleaseSlots.program_name,
    };
    const path: [:0]const u8 = if (kind == .installed) edge.program.installed else path: {
        const size = edge.former.?.dir.realPathFile(edge.init.io, name, &buffer) catch
            return terminal.fail("{s} is gone from the data directory.", .{name});
        buffer[size] = 0;
        break :path buffer[0..size :0];
    };
    try edge.leaveCaches(path);
    host.log.finish();
    const successor: host.exchange.Successor = switch (kind) {
        .installed => .installed,
        .former => .{ .former = path },
        .updated => .{ .updated = path },
    };
    return switch (host.exchange.run(edge.init, &edge.program, successor, sockets)) {
        error.OutOfMemory => error.OutOfMemory,
        error.SystemCallFailed => terminal.fail(
            "The system does not start {s}.",
            .{edge.program.installed},
        ),
    };
}
