//! `bootfarm-target`: runs on a device, turns the edge's stream into /dev/nbd0 and reports how the boot went. It is started
//! by the initramfs and has to work without anything else: static, no files but /proc, raw system calls.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const sys = @import("host").sys;
const console = @import("console.zig");
const control = @import("control_socket.zig");
const attach = @import("attach.zig").attach;

/// One line on the console instead of a stack trace, which would be of no use on a device without symbols.
pub const panic = std.debug.FullPanic(panicOneLine);

const usage =
    \\Usage: bootfarm-target attach [WORD...]   make /dev/nbd0 from an edge's stream, and serve it from the background
    \\       bootfarm-target ready [TEXT]       report to the edge that this machine is up
    \\       bootfarm-target failed TEXT        report that it did not come up, and why (12 characters)
    \\       bootfarm-target status             what the running target does, as JSON
    \\       bootfarm-target version
    \\
    \\attach reads these words from the kernel's command line; given as arguments they come first:
    \\  bootfarm.edge=IP:PORT    where the edge's stream listens
    \\  bootfarm.boot=UUID       the boot that the edge has begun for this device
    \\  bootfarm.token=HEX       its token, 32 hexadecimal digits, good for one session
;

/// How long `ready` and `failed` wait for the edge; the report goes on being sent after that.
const report_timeout_s = 30;
const status_timeout_s = 5;
/// As long as the kernel's own limit (COMMAND_LINE_SIZE is 2048 on x86 and arm64), and our arguments after it.
const words_size_max = 4096;

pub fn main(init: std.process.Init.Minimal) u8 {
    const arguments = init.args.vector;
    if (arguments.len < 2) return refuse();
    const verb = std.mem.span(arguments[1]);
    const rest = arguments[2..];
    if (std.mem.eql(u8, verb, "attach")) {
        var words: [words_size_max]u8 = undefined;
        return attach(readWords(&words, rest), arguments[0]);
    }
    if (std.mem.eql(u8, verb, "ready")) return report("ready", if (rest.len > 0) rest[0] else "");
    if (std.mem.eql(u8, verb, "failed") and rest.len > 0) return report("failed", rest[0]);
    if (std.mem.eql(u8, verb, "status")) return status();
    if (std.mem.eql(u8, verb, "version")) {
        console.print("bootfarm-target {s}", .{base.version});
        return 0;
    }
    if (std.mem.eql(u8, verb, "--help") or std.mem.eql(u8, verb, "help")) {
        console.print(usage, .{});
        return 0;
    }
    return refuse();
}

/// The kernel's command line, then the program's arguments, which so count more.
fn readWords(buffer: *[words_size_max]u8, arguments: []const [*:0]const u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    if (sys.check(linux.open("/proc/cmdline", .{ .CLOEXEC = true }, 0))) |fd| {
        defer sys.close(@intCast(fd));
        writer.end = sys.readAt(@intCast(fd), buffer[0 .. words_size_max / 2], 0) catch 0;
    } else |_| {}
    for (arguments) |argument| writer.print(" {s}", .{argument}) catch break;
    return writer.buffered();
}

fn report(comptime verb: []const u8, text: [*:0]const u8) u8 {
    var request: [control.message_size_max]u8 = undefined;
    const words = std.mem.print(&request, verb ++ " {s}", .{text}) catch {
        console.say("the text is too long", .{});
        return 2;
    };
    var buffer: [control.message_size_max]u8 = undefined;
    _ = control.ask(words, report_timeout_s, &buffer) catch |reason| switch (reason) {
        error.NoAnswer => {
            console.say("the edge has not acknowledged within {d} s; it will be told when it answers", .{report_timeout_s});
            return 1;
        },
        error.NotRunning, error.Refused => return explain(reason),
    };
    return 0;
}

fn status() u8 {
    var buffer: [control.message_size_max]u8 = undefined;
    const text = control.ask("status", status_timeout_s, &buffer) catch |reason| return explain(reason);
    console.print("{s}", .{text});
    return 0;
}

fn explain(reason: control.AskError) u8 {
    switch (reason) {
        error.NotRunning => console.say("no target serves a disk on this machine", .{}),
        error.NoAnswer => console.say("the running target does not answer", .{}),
        error.Refused => console.say("only root may talk to the running target", .{}),
    }
    return 1;
}

fn refuse() u8 {
    console.say("unknown command\n" ++ usage, .{});
    return 2;
}

fn panicOneLine(message: []const u8, _: ?usize) noreturn {
    console.say("stopped by a fault of its own: {s}", .{message});
    linux.exit_group(134);
}
