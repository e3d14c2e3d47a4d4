//! Switches one mutant on. `mutate.zig` puts this file into the mutated copy of module `base` and
//! calls `on` wherever a mutant is; `runner.zig` sets the two variables. It is in no other build.

/// The mutant that is on; 0: none.
pub export var bootfarm_mutation_active: u32 = 0;
/// A byte for each mutant, set when it is reached; null: nobody records.
pub export var bootfarm_mutation_reached: ?[*]u8 = null;

/// What the compiler computes is never mutated.
pub inline fn on(comptime id: u32) bool {
    if (@inComptime()) return false;
    return isOn(id);
}

fn isOn(id: u32) bool {
    if (bootfarm_mutation_reached) |reached| reached[id] = 1;
    return bootfarm_mutation_active == id;
}
