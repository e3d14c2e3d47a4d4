//! The store against its model, with and without crashes: a few hundred operations; `zig build sim -- --store` does millions.

const std = @import("std");
const StoreModel = @import("store_model.zig");
const testing = std.testing;

test "no byte of a version or a layer is wrong after any operation or crash" {
    for (0..3) |seed| {
        var model: StoreModel = undefined;
        try model.init(testing.allocator, seed);
        defer model.deinit();
        for (0..60) |number| model.random() catch |err| {
            std.debug.print("seed {d}, operation {d}: {s}\n", .{ seed, number, model.violation });
            return err;
        };
    }
}
