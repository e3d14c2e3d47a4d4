//! `bootfarm-edge rotate-key`: asks the edge of a data directory to create a new key. The running
//! edge does it, because only it knows when the control plane has accepted the key.

const std = @import("std");
const host = @import("host");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

pub fn run(init: std.process.Init, rest: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: options_module.Complaint = .{};
    const path = parse(rest, &complaint) catch return terminal.fail("{s}", .{complaint.text()});
    const dir = std.Io.Dir.cwd().openDir(init.io, path, .{}) catch
        return terminal.fail("The data directory {s} cannot be read.", .{path});
    dir.access(init.io, "identity.json", .{}) catch
        return terminal.fail("{s} is not the data directory of an enrolled edge.", .{path});
    dir.writeFile(init.io, .{ .sub_path = host.key_rotation.request_name, .data = "" }) catch
        return terminal.fail("{s} cannot be written by this user.", .{path});
    terminal.out(
        "The edge creates a new key within seconds, or when it next runs and reaches the control plane.\n",
    );
    return 0;
}

fn parse(
    rest: []const [:0]const u8,
    complaint: *options_module.Complaint,
) options_module.Error![]const u8 {
    var arguments: options_module.Arguments =
        .{ .command = "rotate-key", .rest = rest, .complaint = complaint };
    var data: ?[]const u8 = null;
    while (try arguments.next()) |argument| {
        if (!std.mem.eql(u8, argument.name, "--data")) return arguments.noOption(argument.name);
        data = try arguments.value(argument.name, argument.value);
    }
    return data orelse complaint.set("rotate-key needs --data DIR of an enrolled edge.", .{});
}
