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
    if (!beginProgram(&edge)) return exchange(&edge, true, null);
    start.prepare(&edge, complaint) catch |err| {
        if (edge.probation == null) return err;
        host.log.info("The new program cannot start: {s}", .{complaint.text()});
        edge.former.?.reject(host.exchange.running_program);
        return exchange(&edge, true, null);
    };
    // The first start has made the directory.
    if (edge.former == null) if (edge.data) |*data| {
        edge.former = .{ .io = init.io, .dir = data.dir };
    };
    if (edge.probation) |*probation| probation.began_us = host.sys.monotonicUs();
    const code = edge.run();
    if (!edge.loop.is_exchanged) return code;
    const was_answered = edge.isAnswered() or
        if (edge.probation) |*probation| probation.was_answered else false;
    if (!edge.is_left) edge.former.?.put(&.{ .was_answered = was_answered }) catch
        // Without its record the next program would have no probation: this one starts again.
        return exchange(&edge, true, &edge.loop.sockets);
    return exchange(&edge, edge.is_left, &edge.loop.sockets);
}

/// Returns false if the former program is to run.
fn beginProgram(edge: *Edge) bool {
    const io = edge.init.io;
    const dir = std.Io.Dir.cwd().openDir(io, edge.options.data orelse return true, .{}) catch
        return true;
    edge.former = .{ .io = io, .dir = dir };
    if (edge.program.is_former) return true;
    switch (edge.former.?.begin(host.exchange.running_program)) {
        .plain => {},
        .probation => |record| edge.probation =
            .{ .was_answered = record.was_answered, .began_us = 0 },
        .failed => return false,
    }
    return true;
}

/// Continues as another program.
fn exchange(
    edge: *Edge,
    is_left: bool,
    sockets: ?*const host.EdgeSockets,
) start.Error!u8 {
    host.log.finish();
    const terminal = edge.terminal;
    var buffer: [std.fs.max_path_bytes:0]u8 = undefined;
    const successor: host.exchange.Successor = if (!is_left) .installed else former: {
        const name = host.FormerProgram.program_name;
        const size = edge.former.?.dir.realPathFile(edge.init.io, name, &buffer) catch
            return terminal.fail("The former program is gone from the data directory.", .{});
        buffer[size] = 0;
        break :former .{ .former = buffer[0..size :0] };
    };
    return switch (host.exchange.run(edge.init, &edge.program, successor, sockets)) {
        error.OutOfMemory => error.OutOfMemory,
        error.SystemCallFailed => terminal.fail(
            "The system does not start {s}.",
            .{edge.program.installed},
        ),
    };
}
