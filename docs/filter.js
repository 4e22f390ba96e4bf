// Leaves the rows of the tables below that contain every word typed; a chapter without such a row is hidden.
for (const field of document.querySelectorAll("input.filter")) {
  const tables = [...document.querySelectorAll("article table")]
  field.hidden = false // without a script there is no field
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/)
    for (const table of tables) {
      let left = 0
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase()
        row.hidden = !words.every(word => text.includes(word))
        left += !row.hidden
      }
      const whole = table.closest(".catalogue") ?? table.closest(".md-typeset__scrollwrap") ?? table
      whole.hidden = left === 0
      if (whole.previousElementSibling?.tagName === "H2") whole.previousElementSibling.hidden = left === 0
    }
  })
}
