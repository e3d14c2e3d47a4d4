//! The sentence that explains why a command failed. What parses or prepares sets it and returns
//! `error.Wrong`; the command prints it.

const std = @import("std");

pub const Complaint = @This();

buffer: [512]u8 = undefined,
size: usize = 0,

pub fn set(complaint: *Complaint, comptime format: []const u8, arguments: anytype) error{Wrong} {
    var writer: std.Io.Writer = .fixed(&complaint.buffer);
    // A sentence that is too long is cut.
    writer.print(format, arguments) catch {};
    complaint.size = writer.end;
    return error.Wrong;
}

pub fn text(complaint: *const Complaint) []const u8 {
    return complaint.buffer[0..complaint.size];
}

pub const Error = error{Wrong};
