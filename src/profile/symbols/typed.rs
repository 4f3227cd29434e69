//! Types of data of all modules.

use super::lookup::Symbols;
use super::types::{DataTypes, Member, Pointee, TypeRef, Untyped, Variable};
use crate::module::Module;
use crate::module::ModuleAddress;
use std::sync::Arc;

impl Symbols {
    fn types(&mut self, module: &Module) -> Result<&mut DataTypes, Untyped> {
        self.dwarf(module).and_then(|lines| lines.types()).ok_or(Untyped::NoDwarf)
    }

    /// The type of the static variable of `module` that begins at `start`.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub fn static_type(&mut self, module: &Module, start: u64) -> Result<TypeRef, Untyped> {
        self.types(module)?.of_static(start)
    }

    /// The variables in scope at an instruction that are in a register or at a distance from one, the innermost
    /// first.
    ///
    /// # Errors
    /// The reason why they are not known.
    pub fn variables(
        &mut self,
        module: &Module,
        place: ModuleAddress,
    ) -> Result<Arc<Vec<Variable>>, Untyped> {
        self.dwarf(module).ok_or(Untyped::NoDwarf)?.variables(place.address)
    }

    /// The member at an offset of a type of `module`; `exact`: elements of arrays have their numbers.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub fn member(
        &mut self,
        module: &Module,
        ty: TypeRef,
        offset: u64,
        exact: bool,
    ) -> Result<Member, Untyped> {
        self.types(module)?.member(ty, offset, exact)
    }

    /// Target of a pointer or reference of type `ty` of `module`.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub fn pointee(&mut self, module: &Module, ty: TypeRef) -> Result<Pointee, Untyped> {
        self.types(module)?.pointee(ty)
    }

    /// Bytes of a type of `module`, if known.
    pub fn size_of(&mut self, module: &Module, ty: TypeRef) -> Option<u64> {
        self.types(module).ok()?.size(ty)
    }
}
